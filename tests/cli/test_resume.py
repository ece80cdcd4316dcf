"""`run.json`, and what `--resume` compares with it before it goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest


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
