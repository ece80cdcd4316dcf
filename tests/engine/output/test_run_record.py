"""`run.json`: written whole or not at all, read back, and compared."""

from __future__ import annotations

import json
import shutil

import pytest
from oasr.errors import OutputError
from oasr.output import results_file
from oasr.output.run_folder import RunFolder
from oasr.output.run_record import RUN_NAME, SCHEMA, differences, read_record, versions, write_record

RECORD = {"schema": SCHEMA, "list": {"sha256": "a", "shard": None}, "model": {}, "settings": {}, "counts": {}}


def test_a_record_reads_back_as_it_was_written(tmp_path):
    assert read_record(tmp_path) is None
    written = RECORD | {"command": "oasr é \udcff", "n": float("nan")}
    write_record(tmp_path / RUN_NAME, written)
    assert read_record(tmp_path) == written | {"n": None}


def test_a_record_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    with RunFolder.open(tmp_path / "out") as folder:
        folder.write_record(RECORD)
        before = (tmp_path / "out" / RUN_NAME).read_bytes()

        def full(fd):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(results_file.os, "fsync", full)
        with pytest.raises(OutputError, match=r"No space left.*run\.json could not be written"):
            folder.write_record(RECORD | {"state": "finished"})
        assert (tmp_path / "out" / RUN_NAME).read_bytes() == before
        assert not list((tmp_path / "out").glob(".oasr-tmp-*"))


def test_a_folder_that_was_replaced_gets_no_record(tmp_path):
    with RunFolder.open(tmp_path / "out") as folder:
        shutil.rmtree(tmp_path / "out")
        (tmp_path / "out").mkdir()
        with pytest.raises(OutputError, match="removed or replaced"):
            folder.write_record(RECORD)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({}, []),
        ({"settings": {"--a": 1}}, []),
        ({"settings": {"--a": 2, "--only-now": 3}}, ["--a: 1 then, 2 now"]),
        ({"settings": {"--wer": "text"}}, []),
        ({"settings": {"--b": None}}, ['--b: "x" then, null now']),
        ({"settings": {"--format": ["txt"]}}, []),
        ({"list": {"sha256": "b", "shard": None}}, ['the list (sha256): "a" then, "b" now']),
        ({"list": {"sha256": "a", "shard": "0/2"}}, ['--shard: null then, "0/2" now']),
        ({"model": {"name": "other", "sha256": "m"}}, []),
        ({"model": {"name": "tiny", "sha256": "n"}}, ['--model (sha256 of its weights): "m" then, "n" now']),
    ],
)
def test_differences_name_each_value(new, expected):
    old = {
        "settings": {"--a": 1, "--b": "x", "--wer": None, "--format": []},
        "list": {"sha256": "a", "shard": None},
        "model": {"name": "tiny", "sha256": "m"},
    }
    assert differences(old, new, ("--wer",)) == expected


def test_shards_differ_in_their_shard_alone():
    one, other = ({"list": {"sha256": "a", "shard": shard}} for shard in ("0/2", "1/2"))
    assert differences(one, other) and not differences(one, other, shards=True)


def test_long_values_are_cut_in_messages():
    (line,) = differences({"settings": {"--prompt": "x" * 500}}, {"settings": {"--prompt": "y"}})
    assert len(line) < 120


def test_versions_are_those_installed():
    import numpy

    assert versions()["numpy"] == numpy.__version__ and json.dumps(versions())
