"""`oasr transcribe` on a fake engine: where rows go, in which order, and how the command ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oasr_cli import console


def ids(rows):
    return [row["id"] for row in rows]


def rid(number):
    return f"r{chr(97 + number // 26)}{chr(97 + number % 26)}"


def test_rows_go_to_stdout_in_list_order_and_everything_else_to_stderr(oasr, engines, manifest):
    done = oasr("transcribe", manifest(10))
    assert done.code == 0
    assert ids(done.rows) == [rid(n) for n in range(10)]
    assert done.rows[3] == {
        "id": "rad",
        "audio": "rad.wav",
        "text": "heard rad",
        "pred_text": "heard rad",
        "language": "en",
        "duration": 0.13,
        "score": -1.0,
        "confidence": 0.5,
        "finish_reason": "stop",
    }
    assert "model tiny.en · aed · cpu · float32" in done.err
    assert "rows: 10 ok, 0 failed" in done.err
    assert "results: stdout" in done.err


def test_single_recordings_folders_and_stdin_are_inputs(oasr, engines, wav, tmp_path, monkeypatch):
    wav("in/b.wav")
    wav("in/deep/a.wav")
    one = wav("one.wav")
    done = oasr("transcribe", one, tmp_path / "in")
    assert done.code == 0
    assert [Path(row["id"]).name for row in done.rows] == ["one.wav", "b.wav", "a.wav"]

    read, write = os.pipe()
    os.write(write, json.dumps({"id": "x", "audio": str(one)}).encode())
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        done = oasr("transcribe", "-")
    assert done.code == 0 and ids(done.rows) == ["x"]


def test_an_output_folder_gets_ordered_rows_and_files(oasr, engines, manifest, tmp_path, read_rows):
    out = tmp_path / "out"
    done = oasr("transcribe", manifest(6), "-o", out, "-f", "json,txt", "--format", "jsonl")
    assert done.code == 0 and done.out == ""
    assert ids(read_rows(out)) == [rid(n) for n in range(6)]
    assert (out / "rae.txt").read_text() == "heard rae\n"
    assert json.loads((out / "rae.json").read_text())["text"] == "heard rae"
    assert str(out / "results.jsonl") in done.err


def test_flags_reach_the_engine(oasr, engines, manifest):
    done = oasr(
        "transcribe", manifest(1), "--device=cpu", "--dtype", "float32", "--decode-method", "aed",
        "--decode-option", "window=auto", "--batch-size", "3", "--batch_seconds", "90.5", "--workers", "1",
        "--threads", "1", "--language", "de", "--task", "translate", "--prompt", "Names: Ada",
        "--word_timestamps", "--max_new_tokens", "99", "--temperature", "0.5", "--top-k", "5",
        "--top-p", "0.9", "--seed", "7", "--model", "base",
    )  # fmt: skip
    assert done.code == 0
    config, options = engines[0].config, engines[0].options
    assert (config.model, config.device, config.dtype, config.decode_method) == (
        "base",
        "cpu",
        "float32",
        "aed",
    )
    assert config.decode_options == {"window": "auto"}
    assert (config.max_batch_size, config.max_batch_seconds, config.workers, config.threads) == (
        3,
        90.5,
        1,
        1,
    )
    assert (options.language, options.task, options.prompt) == ("de", "translate", "Names: Ada")
    assert options.word_timestamps and options.max_new_tokens == config.max_new_tokens == 99
    assert (options.temperature, options.top_k, options.top_p, options.seed) == (0.5, 5, 0.9, 7)
    assert done.rows[0]["words"] == [{"word": "heard", "start": 0.0, "end": 0.5, "confidence": 0.9}]


def test_a_prompt_that_is_not_utf8_is_refused_before_anything_is_loaded(oasr, engines, manifest):
    done = oasr("transcribe", manifest(1), "--prompt", os.fsdecode(b"caf\xe9"))
    assert done.code == 2 and not engines
    assert "--prompt: expected text that UTF-8 can write, got 'caf\\udce9'" in done.err


def test_the_token_limit_is_the_engines_when_not_given(oasr, engines, manifest):
    oasr("transcribe", manifest(1))
    assert engines[0].options.max_new_tokens is None and engines[0].config.max_new_tokens == 448


@pytest.mark.parametrize(
    ("bad", "code"),
    [((), 0), (('{"id": "gone", "audio": "gone.wav"}',), 3)],
)
def test_exit_codes_for_none_and_some_failed(oasr, engines, manifest, bad, code):
    assert oasr("transcribe", manifest(2, *bad)).code == code


def test_exit_code_when_nothing_usable_came_out(oasr, engines, manifest):
    done = oasr("transcribe", manifest(0, '{"id": "gone", "audio": "gone.wav"}'))
    assert done.code == 1
    assert done.rows[0]["error"]["stage"] == "audio" and "pred_text" not in done.rows[0]
    assert "failed: " in done.err and "gone.wav" in done.err


def test_the_summary_shows_the_first_failures_only(oasr, engines, manifest):
    gone = [json.dumps({"id": f"gone{n}", "audio": f"gone{n}.wav"}) for n in range(8)]
    done = oasr("transcribe", manifest(1, *gone))
    assert done.code == 3
    assert done.err.count("  failed: ") == 5 and "... and 3 more" in done.err
    assert [row["id"] for row in done.rows if "error" in row] == [f"gone{n}" for n in range(8)]


def test_wer_is_in_the_rows_and_in_the_summary(oasr, engines, manifest, tmp_path):
    bad = json.dumps({"id": "rzj", "audio": "raa.wav", "text": "heard something"})
    none = json.dumps({"id": "rzi", "audio": "rab.wav"})
    done = oasr("transcribe", manifest(2, bad, none), "--wer")
    assert done.code == 0
    assert [row.get("wer", {}).get("rate") for row in done.rows] == [0.0, 0.0, 50.0, None]
    assert "WER 16.67 % (S 1, D 0, I 0, N 6; 3 rows; english)" in done.err
    assert "1 without a reference" in done.err


def test_wer_against_another_field(oasr, engines, manifest):
    row = json.dumps({"id": "x", "audio": "raa.wav", "text": "no", "gold": "heard x"})
    done = oasr("transcribe", manifest(1, row), "--wer", "--reference-field", "gold")
    assert "WER 0.00 % (S 0, D 0, I 0, N 2; 1 row; english)" in done.err
    assert "wer" not in done.rows[0]


def test_resume_equals_an_unbroken_run(oasr, engines, manifest, tmp_path):
    listed, whole, broken = manifest(9), tmp_path / "whole", tmp_path / "broken"
    assert oasr("transcribe", listed, "-o", whole, "--wer", "-f", "txt").code == 0
    broken.mkdir()
    lines = (whole / "results.jsonl").read_bytes().splitlines(keepends=True)
    (broken / "results.jsonl").write_bytes(lines[7] + lines[2] + lines[0][:20])
    done = oasr("transcribe", listed, "-o", broken, "--resume", "--wer", "-f", "txt")
    assert done.code == 0
    assert "rows: 7 ok, 0 failed, 2 done before" in done.err
    assert "9 rows" in done.err  # the score covers the earlier rows too
    assert sorted(engines[1].heard) == ["raa", "rab", "rad", "rae", "raf", "rag", "rai"]
    assert (broken / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()
    assert sorted(path.name for path in broken.iterdir()) == sorted(path.name for path in whole.iterdir())


def test_resume_remembers_earlier_failures(oasr, engines, manifest, tmp_path):
    listed = manifest(2, '{"id": "gone", "audio": "gone.wav"}')
    assert oasr("transcribe", listed, "-o", tmp_path / "out").code == 3
    done = oasr("transcribe", listed, "-o", tmp_path / "out", "--resume")
    assert done.code == 3 and engines[1].heard == []


@pytest.mark.parametrize(
    ("listed", "written"),
    [
        ({"id": None, "key": "gone", "audio": "gone.wav"}, [{"id": None, "key": "gone"}]),
        ({"id": "two", "audio": "two.wav"}, [{"id": "two-ch0"}, {"id": "two-ch1"}]),
    ],
)
def test_resume_knows_a_failed_row_however_its_id_is_written(
    oasr, engines, manifest, wav, tmp_path, listed, written
):
    wav("two.wav", channels=2)
    rows = [{**keys, "error": {"stage": "decode", "message": "broke"}} for keys in written]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    line = json.dumps(listed)
    done = oasr("transcribe", manifest(2, line), "-o", tmp_path / "out", "--resume", "--channel", "split")
    assert done.code == 3 and f"{len(written)} done before" in done.err


def test_a_failed_row_whose_id_looks_like_that_of_a_channel_is_one_failed_row(
    oasr, engines, manifest, tmp_path
):
    listed = manifest(2, '{"id": "raa-ch1", "audio": "gone.wav"}')
    for more in ((), ("--resume",)):
        assert oasr("transcribe", listed, "-o", tmp_path / "out", *more).code == 3
        counts = json.loads((tmp_path / "out" / "run.json").read_text())["counts"]
        assert counts == {"rows": 3, "ok": 2, "failed": 1, "left": 0}


def test_a_row_is_not_done_because_others_have_ids_like_those_of_its_channels(
    oasr, engines, manifest, wav, tmp_path
):
    wav("two.wav", channels=2)
    lines = [json.dumps({"id": name, "audio": "two.wav"}) for name in ("two-ch0", "two-ch1", "two")]
    assert oasr("transcribe", manifest(0, *lines), "-o", tmp_path / "out").code == 0
    results = tmp_path / "out" / "results.jsonl"
    results.write_bytes(b"".join(results.read_bytes().splitlines(keepends=True)[:2]))
    assert oasr("transcribe", manifest(0, *lines), "-o", tmp_path / "out", "--resume").code == 0
    assert engines[1].heard == ["two"]


def test_wer_takes_either_key_of_a_reference_of_an_earlier_run(oasr, engines, manifest, tmp_path):
    row = json.dumps({"id": "x", "audio": "raa.wav", "text": None, "txt": "heard x"})
    assert oasr("transcribe", manifest(1, row), "-o", tmp_path / "out").code == 0
    done = oasr("transcribe", manifest(1, row), "-o", tmp_path / "out", "--resume", "--wer")
    assert done.code == 0 and "without a reference" not in done.err and "2 rows" in done.err


def test_resume_of_split_channels(oasr, engines, wav, tmp_path, read_rows):
    folder = tmp_path / "in"
    for number in range(5):
        wav(f"in/{number}.wav", channels=1 + number % 2)
    out, again = tmp_path / "out", tmp_path / "again"
    assert oasr("transcribe", folder, "-o", out, "--channel", "split").code == 0
    names = [Path(row["id"]).name for row in read_rows(out)]
    assert names == ["0.wav", "1.wav-ch0", "1.wav-ch1", "2.wav", "3.wav-ch0", "3.wav-ch1", "4.wav"]
    # 1.wav is whole, of 3.wav one channel is missing.
    lines = (out / "results.jsonl").read_bytes().splitlines(keepends=True)
    again.mkdir()
    (again / "results.jsonl").write_bytes(b"".join(lines[:5]))
    done = oasr("transcribe", folder, "-o", again, "--channel", "split", "--resume")
    assert done.code == 0
    assert sorted(Path(name).name for name in engines[1].heard) == ["3.wav-ch0", "3.wav-ch1", "4.wav"]
    assert (again / "results.jsonl").read_bytes() == (out / "results.jsonl").read_bytes()


def test_overwrite_keeps_the_old_results_until_the_engine_stands(
    oasr, engines, manifest, tmp_path, read_rows
):
    listed, out = manifest(2), tmp_path / "out"
    assert oasr("transcribe", listed, "-o", out).code == 0
    done = oasr("transcribe", listed, "-o", out, "--overwrite", "--decode-method", "paraformer")
    assert done.code == 2 and "paraformer" in done.err
    assert len(read_rows(out)) == 2
    done = oasr("transcribe", manifest(1), "-o", out, "--overwrite")
    assert done.code == 0 and len(read_rows(out)) == 1


def test_a_row_may_ask_for_another_language_and_fails_alone(oasr, engines, manifest):
    rows = [json.dumps({"id": i, "audio": "raa.wav", "language": i}) for i in ("de", "xx")]
    done = oasr("transcribe", manifest(1, *rows))
    assert done.code == 3
    assert [row.get("error", {}).get("stage") for row in done.rows] == [None, None, "admission"]
    assert done.rows[1]["language"] == "de"


def test_a_terminal_gets_a_readable_line_a_row(oasr, engines, manifest, monkeypatch):
    monkeypatch.setattr(console, "stdout_is_terminal", lambda: True)
    bad = json.dumps({"id": "no\x1b[2Jsuch\nid", "audio": "gone.wav"})
    done = oasr("transcribe", manifest(1, bad), "--word-timestamps", "--wer", "--no-progress")
    lines = done.out.splitlines()
    assert lines[0] == "raa  heard raa"
    assert lines[1].split() == ["0.00", "0.50", "heard"]
    assert lines[2].strip() == "WER 0.00 % (S 0 D 0 I 0 N 2)"
    assert lines[3].startswith("no\\x1b[2Jsuch\\nid  audio: ") and len(lines) == 4
    done = oasr("transcribe", manifest(1), "-f", "jsonl", "--no-progress")
    assert ids(done.rows) == ["raa"]


def test_a_closed_pipe_ends_the_run_quietly(manifest, child_env):
    # More than a pipe holds, so that rows are still to come when the reader goes away.
    rows = [json.dumps({"id": str(n), "audio": "raa.wav", "padding": "x" * 4000}) for n in range(60)]
    script = Path(__file__).with_name("fake_oasr.py")
    command = [sys.executable, str(script), "transcribe", str(manifest(1, *rows))]
    with subprocess.Popen(command, env=child_env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        err = child.stderr.read().decode()
    assert child.returncode == 1
    assert err == "model tiny.en · aed · cpu · float32\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_says_where_it_was(manifest, child_env):
    script = Path(__file__).with_name("fake_oasr.py")
    command = [sys.executable, str(script), "transcribe", str(manifest(1))]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, env=child_env, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert "error: stdout: No space left on device: results could not be written\n" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_progress_lines_where_stderr_is_no_terminal(oasr, engines, manifest, monkeypatch):
    monkeypatch.setattr("oasr_cli.progress.LINE_EVERY_S", 0.0)
    quiet, chatty = oasr("transcribe", manifest(3)), oasr("transcribe", manifest(3), "--progress")
    assert "3/3 rows" not in quiet.err
    assert "3/3 rows" in chatty.err
