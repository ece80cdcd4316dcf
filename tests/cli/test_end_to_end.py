"""The whole command with the embedded model on real speech and on what pretends to be audio."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path

import pytest
import srt
import webvtt

pytestmark = pytest.mark.weights


@pytest.fixture
def tone(tmp_path):
    def write(name: str, samples: int, rate: int = 16000, value: int = 0) -> str:
        with wave.open(str(tmp_path / name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(value.to_bytes(2, "little", signed=True) * samples)
        return name

    return write


def _manifest(path: Path, rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_demo_is_transcribed_scored_and_the_same_at_any_batch_size(
    oasr, demo_manifest, tmp_path, read_rows
):
    out = tmp_path / "out"
    quick = ("--dtype", "float32", "--decode-option", "window=auto")
    done = oasr("transcribe", demo_manifest, *quick, "--wer", "-o", out, "-f", "json,txt")
    assert done.code == 0, done.err
    rows = read_rows(out)
    listed = [json.loads(line) for line in demo_manifest.read_text().splitlines()]
    assert [row["id"] for row in rows] == [row["id"] for row in listed]
    errors = sum(row["wer"][kind] for row in rows for kind in ("substitutions", "deletions", "insertions"))
    assert errors / sum(row["wer"]["reference_units"] for row in rows) < 0.1
    assert (
        "WER " in done.err
        and "8 ok, 0 failed" in done.err
        and "model tiny.en · aed · cpu · float32" in done.err
    )
    assert all((out / f"{row['id']}.txt").read_text().split() == row["pred_text"].split() for row in rows)

    texts = {row["id"]: row["pred_text"] for row in rows}
    mixed = [row | {"audio": str(demo_manifest.parent / row["audio"])} for row in listed[::-1]]
    backwards = _manifest(tmp_path / "backwards.jsonl", mixed[1::2] + mixed[::2])
    for table, size in ((demo_manifest, "1"), (backwards, "7")):
        again = oasr("transcribe", table, *quick, "--batch-size", size)
        assert {row["id"]: row["pred_text"] for row in again.rows} == texts


def test_every_format_holds_the_same_words(oasr, demo_manifest, tmp_path, read_rows):
    listed = [json.loads(line) for line in demo_manifest.read_text().splitlines()]
    rows = sorted(listed, key=lambda row: row["duration"])[:2]
    short = _manifest(
        tmp_path / "l.jsonl", [row | {"audio": str(demo_manifest.parent / row["audio"])} for row in rows]
    )
    out = tmp_path / "out"
    flags = ("--highlight-words", "--dtype", "float32", "--decode-option", "window=auto")
    done = oasr("transcribe", short, "-o", out, "-f", "srt,vtt,ctm,kaldi,tsv,txt,json", *flags)
    assert done.code == 0, done.err
    told = {row["id"]: row for row in read_rows(out)}
    spoken = {name: [word["word"] for word in row["words"]] for name, row in told.items()}
    assert all(" ".join(spoken[name]) == row["pred_text"] for name, row in told.items())
    for name, words in spoken.items():
        cues = list(srt.parse((out / f"{name}.srt").read_text()))
        assert " ".join(cue.content for cue in cues).split() == words
        assert [cue.text for cue in webvtt.read(out / f"{name}.vtt")] == [cue.content for cue in cues]
        assert all(cue.end.total_seconds() <= told[name]["duration"] + 0.01 for cue in cues)
        lines = [line.split("\t") for line in (out / f"{name}.tsv").read_text().splitlines()[1:]]
        assert [line[2] for line in lines] == [cue.content.replace("\n", " ") for cue in cues]
        (segment,) = json.loads((out / f"{name}.json").read_text())["segments"]
        assert "".join(word["word"] for word in segment["words"]) == segment["text"]
    ctm = [line.split() for line in (out / "results.ctm").read_text().splitlines()]
    assert [fields[4] for fields in ctm] == [word for name in sorted(spoken) for word in spoken[name]]
    kaldi = [line.split() for line in (out / "text").read_text().splitlines()]
    assert kaldi == [[name, *spoken[name]] for name in sorted(spoken)]


def test_broken_and_tiny_recordings_beside_a_good_one(oasr, demo_manifest, tmp_path, tone):
    good = str(demo_manifest.parent / "audio" / "LJ001-0002.flac")
    (tmp_path / "zero.wav").write_bytes(b"")
    (tmp_path / "page.wav").write_text("<html>404</html>")
    (tmp_path / "folder.wav").mkdir()
    rows = [{"id": name, "audio": f"{name}.wav"} for name in ("zero", "page", "folder", "missing")]
    rows += [{"id": f"n{n}", "audio": tone(f"n{n}.wav", n, value=1000)} for n in (1, 10, 200, 400)]
    rows += [{"id": "empty", "audio": tone("empty.wav", 0)}, {"id": "late", "audio": good, "offset": 60}]
    rows += [{"id": "good", "audio": good}]
    done = oasr("transcribe", _manifest(tmp_path / "l.jsonl", rows))
    assert done.code == 3
    assert [row["id"] for row in done.rows] == [row["id"] for row in rows]
    failed = {row["id"]: row["error"]["stage"] for row in done.rows if "error" in row}
    assert (
        failed.items()
        >= dict.fromkeys(("zero", "page", "folder", "missing", "late", "empty"), "audio").items()
    )
    assert set(failed.values()) == {"audio"} and "good" not in failed
    assert "comparatively modern" in done.rows[-1]["pred_text"]


def test_ten_minutes_of_digital_silence_are_an_empty_text(oasr, tmp_path, tone):
    done = oasr("transcribe", tmp_path / tone("silence.wav", 600 * 8000, rate=8000))
    assert done.code == 0
    assert done.rows[0]["pred_text"] == "" and done.rows[0]["duration"] == 600.0
    assert done.rows[0]["language"] == "en"  # the model knows no other


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--language", "xx"], ["xx"]),
        (["--decode-method", "nosuch"], ["nosuch", "aed"]),
        (["--decode-option", "nosuch=1"], ["nosuch", "valid: "]),
        (["--decode-option", "window=half"], ["--decode-option window", "full, auto"]),
        (["--device", "tpu"], ["--device", "cuda"]),
        (["--n-best", "2"], ["'aed' returns at most 1 hypotheses", "2 were asked for"]),
    ],
)
def test_what_the_checkpoint_cannot_do_is_usage(oasr, demo_manifest, flags, words):
    done = oasr("transcribe", demo_manifest, *flags)
    assert done.code == 2 and done.out == ""
    for word in words:
        assert word in done.err


def test_an_interrupted_run_goes_on_to_the_same_results(oasr, demo_manifest, tmp_path, child_env, read_rows):
    known = [json.loads(line) for line in demo_manifest.read_text().splitlines()]
    audio = [demo_manifest.parent / known[number % 2]["audio"] for number in range(12)]
    listed, out, gate = tmp_path / "list", tmp_path / "out", tmp_path / "gate"
    listed.mkdir()
    # The second half waits, so that the signal comes in the middle of the list.
    wait = f"while ! [ -e {gate} ]; do sleep 0.1; done"
    (listed / "wav.scp").write_text(
        "".join(f"u{n:02} {path if n < 6 else f'{wait}; cat {path} |'}\n" for n, path in enumerate(audio))
    )
    quick = ["--dtype", "float32", "--decode-option", "window=auto", "--allow-pipes"]
    flags = ["transcribe", str(listed), "--batch-size", "2", *quick, "-o"]
    command = [sys.executable, "-m", "oasr_cli", *flags, str(out)]
    with subprocess.Popen(command, env=child_env, stderr=subprocess.PIPE, text=True) as child:
        results, deadline = out / "results.jsonl", time.monotonic() + 200
        while not (results.exists() and results.stat().st_size):
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=240)
    assert child.returncode == 130 and "Traceback" not in err, err
    assert 0 < len(read_rows(out)) <= 6
    gate.touch()
    assert oasr(*flags, out, "--resume").code == 0
    assert oasr(*flags, tmp_path / "whole").code == 0
    resumed, whole = read_rows(out), read_rows(tmp_path / "whole")
    # The rows met in other batches, so a sum may round the other way in its last digit; nothing else may.
    for one, other in zip(resumed, whole, strict=True):
        for key in ("score", "confidence"):
            assert one.pop(key) == pytest.approx(other.pop(key), abs=2e-4)
    assert resumed == whole


@pytest.mark.slow
def test_awkward_recordings_all_come_out(oasr, shared_speech, tmp_path, read_rows):
    table = shared_speech / "awkward" / "awkward.jsonl"
    done = oasr("transcribe", table, "-o", tmp_path / "out", "--wer", "--dtype", "float32")
    assert done.code == 0, done.err
    rows = {row["id"]: row for row in read_rows(tmp_path / "out")}
    assert len(rows) == len(table.read_text().splitlines())
    assert rows["digital_silence_wav"]["pred_text"] == ""
    clean = ("streamed_header_wav", "sonnet_p001_webm", "u8_11025_wav", "osr_us_000_0034_8k", "long_gap_flac")
    assert all(rows[name]["wer"]["rate"] < 15 for name in clean)


def test_recordings_that_are_none_leave_nothing_usable(oasr, shared_speech):
    done = oasr("transcribe", shared_speech / "broken" / "broken.jsonl")
    assert done.code == 1
    assert [row["error"]["stage"] for row in done.rows] == ["audio"] * len(done.rows)
