"""partial.jsonl: what is known of long recordings while a run lasts."""

from __future__ import annotations

import json

import pytest
from helpers.transcripts import row_of
from oasr.errors import OutputError
from oasr.output.run_folder import RunFolder
from oasr.types import RequestOutput

OUTPUT = RequestOutput("u", text="a b", duration_s=61.0)
PART = RequestOutput("u", text="a", segments=((0.0, 29.5, "a"), (29.5, 60.0001, "b")), finished=False)


def test_what_is_known_of_an_unfinished_recording_stands_in_a_file_until_the_run_ends(tmp_path):
    partial = tmp_path / "partial.jsonl"
    with RunFolder.open(tmp_path) as run:
        assert not partial.exists()
        run.append_part("u", PART)
        written = [json.loads(line) for line in partial.read_text().splitlines()]
        assert written == [
            {"id": "u", "start": 0.0, "end": 29.5, "text": "a"},
            {"id": "u", "start": 29.5, "end": 60.0, "text": "b"},
        ]
    assert partial.exists(), "the run was stopped: what it had found is not lost"
    with RunFolder.open(tmp_path, resume=True) as run:
        assert len(partial.read_text().splitlines()) == 2
        run.append_part("u", PART)
        assert len(partial.read_text().splitlines()) == 2, "begun anew"
        run.append((0, 0), "u", row_of(OUTPUT), OUTPUT)
        run.finish()
        assert not partial.exists()


def test_a_run_that_was_stopped_in_a_recording_leaves_it(tmp_path):
    with RunFolder.open(tmp_path) as run:
        run.append_part("u", PART)
        run.append_part("v", PART)
        run.append((0, 0), "u", row_of(OUTPUT), OUTPUT)
        run.finish()
    assert (tmp_path / "partial.jsonl").exists()


def test_one_that_a_killed_run_left_goes_when_the_list_is_done(tmp_path):
    with RunFolder.open(tmp_path) as run:
        run.append_part("u", PART)
    with RunFolder.open(tmp_path, resume=True) as run:
        run.append((0, 0), "u", row_of(OUTPUT), OUTPUT)
        run.finish()
    assert not (tmp_path / "partial.jsonl").exists()


def test_a_partial_file_of_somebody_else_is_left_alone(tmp_path):
    with RunFolder.open(tmp_path) as run:
        (tmp_path / "partial.jsonl").write_text("mine\n")
        with pytest.raises(OutputError, match=r"partial.jsonl: .*not oasr's"):
            run.append_part("u", PART)
    assert (tmp_path / "partial.jsonl").read_text() == "mine\n"
    with RunFolder.open(tmp_path / "other") as run:
        run.append_part("u", PART)
    with RunFolder.open(tmp_path / "other", overwrite=True):
        assert not (tmp_path / "other" / "partial.jsonl").exists(), "ours is removed with our other files"
