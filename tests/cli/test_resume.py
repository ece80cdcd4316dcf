"""`run.json`, and what `--resume` compares with it before it goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from helpers.audio_files import encode, sweep

import oasr_cli.run


@pytest.fixture
def begun(oasr, engines, manifest, tmp_path):
    """A finished folder over three rows, one of which fails: (list, folder)."""
    listed = manifest(2, '{"id": "late", "audio": "late.wav"}')
    assert oasr("transcribe", listed, "-o", tmp_path / "out").code == 3
    return listed, tmp_path / "out"


def _record(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text("utf-8"))


def test_the_record_says_what_made_the_results(begun):
    listed, out = begun
    record = _record(out)
    assert record["schema"] == "oasr-run/1" and record["state"] == "finished" and record["changes"] == []
    assert record["counts"] == {"rows": 3, "ok": 2, "failed": 1, "left": 0}
    assert record["list"]["sha256"] == hashlib.sha256(listed.read_bytes()).hexdigest()
    assert record["list"]["inputs"] == [str(listed)] and record["list"]["shard"] is None
    assert record["settings"]["--decode-method"] == "aed" and record["settings"]["--language"] is None
    assert record["config"]["max_batch_size"] == 16 and {"oasr", "python", "numpy"} <= set(record["versions"])
    assert record["model"]["name"] == "tiny.en" and record["command"].startswith("oasr transcribe ")


def test_a_stopped_run_is_recorded_as_one(oasr, engines, manifest, tmp_path, monkeypatch):
    class Stops:
        def __get__(self, sink, kind):
            raise OSError("pulled out")

    monkeypatch.setattr("oasr_cli.run.Run._record", Stops())
    assert oasr("transcribe", manifest(3), "-o", tmp_path / "out").code == 1
    assert _record(tmp_path / "out")["state"] == "stopped"


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--language", "de"], '--language: null then, "de" now'),
        (["--n-best", "2"], "--n-best: 1 then, 2 now"),
        (["--channel", "split"], '--channel: "mix" then, "split" now'),
        (["--decode-option", "window=auto"], "--decode-option: {} then, "),
        (["--shard", "0/2"], '--shard: null then, "0/2" now'),
        (["-f", "srt", "--cue-pause", "2"], "--cue-pause: 1.0 then, 2.0 now"),
        (["--word-timestamps"], "--word-timestamps: false then, true now"),
    ],
)
def test_a_changed_flag_is_refused_and_named(oasr, engines, begun, flags, named):
    listed, out = begun
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    done = oasr("transcribe", listed, "-o", out, "--resume", *flags)
    assert done.code == 2 and named in done.err and "--resume-anyway" in done.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert oasr("transcribe", listed, "-o", out, "--resume-anyway", *flags).code == 3
    assert named in " ".join(_record(out)["changes"])


def test_flags_of_speed_may_change(oasr, begun):
    listed, out = begun
    assert oasr("transcribe", listed, "-o", out, "--resume", "--batch-size", 2, "--workers", 1).code == 3
    assert _record(out)["changes"] == [] and _record(out)["config"]["max_batch_size"] == 2


def test_a_changed_list_is_refused(oasr, engines, begun, read_rows):
    listed, out = begun
    rows = listed.read_text().splitlines(keepends=True)
    listed.write_text(rows[1] + rows[2])
    done = oasr("transcribe", listed, "-o", out, "--resume")
    assert done.code == 2 and "the list (sha256)" in done.err and len(engines) == 1  # before the model loads
    assert oasr("transcribe", listed, "-o", out, "--resume", "--resume-anyway").code == 3
    assert [row["id"] for row in read_rows(out)] == ["rab", "late", "raa"]


def test_another_model_is_refused(oasr, engines, begun, tmp_path):
    listed, out = begun
    (tmp_path / "other").mkdir()
    done = oasr("transcribe", listed, "-o", out, "--resume", "--model", tmp_path / "other")
    assert done.code == 2 and '--model: "tiny.en" then' in done.err
    assert _record(out)["model"]["name"] == "tiny.en"


def test_formats_of_before_go_on(oasr, engines, manifest, tmp_path):
    listed, out = manifest(3), tmp_path / "out"
    assert oasr("transcribe", listed, "-o", out, "-f", "txt,srt").code == 0
    lines = (out / "results.jsonl").read_bytes().splitlines(keepends=True)
    (out / "results.jsonl").write_bytes(lines[0])
    for name in ("rab", "rac"):
        (out / f"{name}.srt").unlink()
    assert oasr("transcribe", listed, "-o", out, "--resume").code == 0
    assert {path.name for path in out.glob("*.srt")} == {"raa.srt", "rab.srt", "rac.srt"}
    assert (out / "results.jsonl").read_bytes() == b"".join(lines)


def test_failed_rows_stay_unless_they_are_retried(oasr, engines, begun, wav, read_rows):
    listed, out = begun
    wav("late.wav")
    assert oasr("transcribe", listed, "-o", out, "--resume").code == 3
    done = oasr("transcribe", listed, "-o", out, "--retry-failed")
    assert done.code == 0 and "1 failed row of the earlier run tried again" in done.err
    assert engines[2].heard == ["late"] and "1 ok, 0 failed, 2 done before" in done.err
    assert [row["pred_text"] for row in read_rows(out)] == ["heard raa", "heard rab", "heard late"]
    assert _record(out)["counts"] == {"rows": 3, "ok": 3, "failed": 0, "left": 0}


def test_a_folder_without_a_record_goes_on_and_says_so(oasr, begun):
    listed, out = begun
    (out / "run.json").unlink()
    done = oasr("transcribe", listed, "-o", out, "--resume", "--language", "de")
    assert done.code == 3 and "no run.json" in done.err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "oasr-run/9"}', "\xff"])
def test_a_record_of_something_else_is_refused(oasr, begun, text):
    listed, out = begun
    (out / "run.json").write_text(text, encoding="latin-1")
    done = oasr("transcribe", listed, "-o", out, "--resume")
    assert done.code == 2 and "run.json" in done.err and (out / "run.json").read_text("latin-1") == text


def test_a_run_json_of_somebody_else_is_left_alone(oasr, engines, manifest, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "run.json").write_text("mine")
    assert oasr("transcribe", manifest(1), "-o", out, "--overwrite").code == 1
    assert (out / "run.json").read_text() == "mine"


def test_overwrite_begins_a_new_record(oasr, begun):
    listed, out = begun
    assert oasr("transcribe", listed, "-o", out, "--overwrite", "--language", "de").code == 3
    assert _record(out)["settings"]["--language"] == "de" and _record(out)["changes"] == []


def test_a_folder_deleted_under_the_run(oasr, engines, manifest, tmp_path, monkeypatch):
    from oasr_cli.folder_sink import FolderSink

    out, write = tmp_path / "out", FolderSink.write

    def deleting(sink, row, record, output):
        write(sink, row, record, output)
        shutil.rmtree(out)

    monkeypatch.setattr(FolderSink, "write", deleting)
    done = oasr("transcribe", manifest(3), "-o", out)
    assert done.code == 1 and "was removed or replaced" in done.err and not out.exists()


# Split channels -------------------------------------------------------------------------------

TWO = json.dumps({"id": "two", "audio": "two.wav", "text": "heard two"})
SPLIT = ("--channel", "split", "--wer")


@pytest.fixture
def changed_stream(engines, monkeypatch):
    """Let what the next engine gives pass through a function."""

    load = oasr_cli.run.load_engine

    def change(change_results):
        def loaded(config):
            engine = load(config)
            stream = engine.stream

            def changed(*rows, **how):
                yield from change_results(stream(*rows, **how))

            engine.stream = changed
            monkeypatch.setattr(oasr_cli.run, "load_engine", load)
            return engine

        monkeypatch.setattr(oasr_cli.run, "load_engine", loaded)

    return change


def _score_lines(done):
    return [line for line in done.err.splitlines() if line.startswith(("WER", "CER"))]


def _only(out: Path, *lines: int) -> None:
    """Leave these lines of the results alone."""
    results = out / "results.jsonl"
    stored = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(stored[line] for line in lines))


def test_a_stop_between_two_channels_leaves_the_row(
    oasr, engines, manifest, wav, tmp_path, changed_stream, read_rows
):
    wav("two.wav", channels=2)
    listed, out, whole = manifest(3, TWO), tmp_path / "out", tmp_path / "whole"
    unbroken = oasr("transcribe", listed, "-o", whole, *SPLIT)
    changed_stream(lambda results: islice(results, 4))
    assert oasr("transcribe", listed, "-o", out, *SPLIT).code == 0
    assert [row["id"] for row in read_rows(out)] == ["raa", "rab", "rac", "two-ch0"]
    record = _record(out)
    assert record["state"] == "stopped" and "results_per_row" not in record
    assert record["counts"] == {"rows": 4, "ok": 4, "failed": 0, "left": 1}
    assert oasr("merge", out, "-o", tmp_path / "all").code != 0

    done = oasr("transcribe", listed, "-o", out, *SPLIT, "--resume")
    assert done.code == 0 and engines[-1].heard == ["two-ch1", "two-ch0"]
    # The channel that was there is neither scored nor counted twice.
    assert _score_lines(done) == _score_lines(unbroken) != []
    assert "rows: 1 ok, 0 failed, 4 done before" in done.err
    for key in ("state", "counts", "results_per_row"):
        assert _record(out)[key] == _record(whole)[key]
    assert (out / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()


def test_a_channel_that_stays_leaves_no_partial_text(oasr, manifest, wav, tmp_path, changed_stream):
    wav("two.wav", channels=2)
    listed, out = manifest(0, TWO), tmp_path / "out"
    oasr("transcribe", listed, "-o", out, *SPLIT)
    _only(out, 0)
    changed_stream(
        lambda results: (
            (row, replace(output, finished=finished)) for row, output in results for finished in (False, True)
        )
    )
    assert oasr("transcribe", listed, "-o", out, *SPLIT, "--resume").code == 0
    assert not (out / "partial.jsonl").exists()


def test_a_good_and_a_failed_channel_stay_one_each(oasr, engines, manifest, wav, tmp_path):
    wav("two.wav", channels=2)
    out = tmp_path / "out"
    out.mkdir()
    rows = [
        {"id": "two-ch0", "pred_text": "heard"},
        {"id": "two-ch1", "error": {"stage": "decode", "message": "broke"}},
    ]
    (out / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert oasr("transcribe", manifest(0, TWO), "-o", out, "--channel", "split", "--resume").code == 3
    assert engines[-1].heard == []
    assert _record(out)["counts"] == {"rows": 1, "ok": 1, "failed": 1, "left": 0}


def test_channels_of_a_container_of_ffmpeg_are_known(oasr, engines, tmp_path):
    clip, out = tmp_path / "two.m4a", tmp_path / "out"
    encode(clip, "ipod", "aac", sweep(0.5, 16000, channels=2), 16000)
    command = ("transcribe", clip, "-o", out, "--channel", "split")
    assert oasr(*command).code == 0 and len(engines[-1].heard) == 2
    (out / "run.json").unlink()
    assert oasr(*command, "--resume").code == 0 and engines[-1].heard == []
    _only(out, 0)
    assert oasr(*command, "--resume").code == 0 and len(engines[-1].heard) == 2


def test_channels_of_a_command_are_those_of_a_finished_run(oasr, engines, wav, tmp_path):
    clip, data, out = wav("two.wav", channels=2), tmp_path / "data", tmp_path / "out"
    data.mkdir()
    (data / "wav.scp").write_text(f"one {wav('one.wav')}\ntwo cat {clip} |\n")
    # The second row of the list is the first one of its shard.
    command = ("transcribe", data, "-o", out, "--channel", "split", "--allow-pipes", "--shard", "1/2")
    assert oasr(*command).code == 0
    both = (out / "results.jsonl").read_bytes()
    again = []
    for change in (lambda: None, lambda: _only(out, 0), (out / "run.json").unlink):
        change()
        assert oasr(*command, "--resume").code == 0
        again.append(len(engines[-1].heard))
        assert (out / "results.jsonl").read_bytes() == both
    # All there; a channel is missing; both are there, and nobody knows whether there were more.
    assert again == [0, 2, 2]
