"""A disk that fills up, a folder that another run has: stopped or refused in words, and nothing is lost."""

from __future__ import annotations

import json
import subprocess

import pytest
from oasr.errors import OutputError
from oasr.output.run_folder import RunFolder

import oasr_cli.run


def test_a_folder_that_another_run_has_is_refused_before_the_model_loads(
    oasr, engines, manifest, tmp_path, start_paused, read_rows
):
    listed, out = manifest(20), tmp_path / "out"
    first = start_paused(listed, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for flag in ("--resume", "--retry-failed", "--overwrite"):
        done = oasr("transcribe", listed, "-o", out, flag)
        assert done.code == 2 and "another oasr run is writing here" in done.err
    assert oasr("transcribe", listed, "-o", out).code == 2
    assert engines == [] and {path.name: path.read_bytes() for path in out.iterdir()} == before
    first.terminate()
    assert first.wait(60) == 143 and len(read_rows(out)) == 12
    assert oasr("transcribe", listed, "-o", out, "--resume").code == 0  # the lock went with the process
    assert len(read_rows(out)) == 20


@pytest.mark.parametrize("flag", ["--overwrite", "--resume"])
def test_a_folder_is_held_while_the_model_loads(
    oasr, engines, manifest, tmp_path, read_rows, monkeypatch, flag
):
    listed, out = manifest(2), tmp_path / "out"
    assert oasr("transcribe", listed, "-o", out).code == 0
    load, kept = oasr_cli.run.load_engine, []

    def while_it_loads(config):
        with pytest.raises(OutputError, match="another oasr run is writing here"):
            RunFolder.open(out, overwrite=True)
        kept.append(len(read_rows(out)))
        return load(config)

    monkeypatch.setattr(oasr_cli.run, "load_engine", while_it_loads)
    assert oasr("transcribe", listed, "-o", out, flag).code == 0
    assert kept == [2] and len(read_rows(out)) == 2


@pytest.mark.parametrize(
    ("ballast", "said"),
    [(40_000, "rows are saved; --resume goes on from there"), (10_000, "not yet in manifest order")],
)
def test_a_full_disk_stops_the_run_and_a_resume_goes_on(
    oasr, engines, manifest, tmp_path, small_disk, ballast, said
):
    lines = manifest(26).read_text().splitlines()
    rows = [json.loads(line) | {"note": "x" * 1000} for line in lines]
    listed, out, whole = tmp_path / "long.jsonl", small_disk / "out", tmp_path / "whole"
    listed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (small_disk / "ballast").write_bytes(b"0" * ballast)
    done = oasr("transcribe", listed, "-o", out, "-f", "kaldi")
    assert done.code == 1 and "No space left on device" in done.err and said in done.err
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    assert oasr("transcribe", listed, "-o", out, "--resume").code == 0
    assert oasr("transcribe", listed, "-o", whole, "-f", "kaldi").code == 0
    for name in ("results.jsonl", "text"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert json.loads((out / "run.json").read_text())["state"] == "finished"
    assert not list(out.glob(".oasr-tmp-*"))
