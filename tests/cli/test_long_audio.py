"""Long recordings on the command line: flags, what is shown meanwhile, and real speech."""

from __future__ import annotations

import json
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.joined_speech import RATE, joined, write
from oasr.scoring.wer import score_row
from oasr.types import RequestOutput, Utterance

from oasr_cli import sinks
from oasr_cli.sinks import TerminalSink
from oasr_cli.tally import Tally

SILERO = pytest.param(
    "silero",
    marks=pytest.mark.skipif(
        find_spec("silero_vad") is None or find_spec("onnxruntime") is None, reason="needs the extra vad"
    ),
)


def test_the_flags_reach_the_engine(oasr, engines, manifest):
    assert oasr("transcribe", manifest(1)).code == 0
    assert (engines[0].config.vad, engines[0].config.max_window_s) == ("pauses", None)
    assert oasr("transcribe", manifest(1), "--vad", "energy", "--max_window", "12.5").code == 0
    assert (engines[1].config.vad, engines[1].config.max_window_s) == ("energy", 12.5)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--max-window", "0"], ["--max-window: expected a number > 0"]),
        (["-f", "rttm"], ["--format rttm is made of speech regions", "--vad pauses", "--vad silero"]),
        (["-f", "rttm", "--vad", "none"], ["--format rttm", "--vad none"]),
    ],
)
def test_flags_that_cannot_be_are_usage(oasr, engines, manifest, tmp_path, flags, words):
    done = oasr("transcribe", manifest(1), "-o", tmp_path / "out", *flags)
    assert done.code == 2 and not engines
    for word in words:
        assert word in done.err


def part(*segments):
    return RequestOutput("long", text="x", duration_s=30.0, segments=segments, finished=False)


def test_a_terminal_shows_windows_as_they_are_finished_and_no_text_twice(monkeypatch):
    shown = []
    monkeypatch.setattr(
        sinks,
        "console",
        SimpleNamespace(styled_result=lambda head, text, *style: shown.append(head[0] + text)),
    )
    sink, row = TerminalSink(), Utterance("long")
    sink.part(row, part((0.0, 29.5, "one")))
    sink.part(row, part((29.5, 58.0, "two"), (3700.5, 3730.0, "three")))
    whole = RequestOutput(
        "long",
        text="one two three four",
        segments=(
            (0.0, 29.5, "one"),
            (29.5, 58.0, "two"),
            (3700.5, 3730.0, "three"),
            (3730.0, 3740.0, "four"),
        ),
    )
    sink.write(row, {"id": "long", "pred_text": whole.text}, whole)
    sink.write(Utterance("short"), {"id": "short", "pred_text": "all"}, RequestOutput("short", text="all"))
    assert shown == [
        "long  0.0 s  one", "long  29.5 s  two", "long  1:01:40  three", "long  1:02:10  four", "short  all"
    ]  # fmt: skip


def test_progress_counts_what_is_done_of_long_recordings():
    now = [0.0]
    tally = Tally(total=2, clock=lambda: now[0])
    tally.start()
    row = Utterance("long", index=1)
    tally.part(row, part())
    tally.part(row, part())
    now[0] = 4.0
    assert tally.progress_line() == "0/2 rows · 0:01:00 into long recordings · 15.0× real time"
    tally.count(row, RequestOutput("long", text="x", duration_s=80.0))
    assert tally.rtfx == 20.0 and "into long" not in tally.progress_line()


# Real speech ---------------------------------------------------------------------------------

QUICK = ("--decode-option", "window=auto")


@pytest.mark.weights
@pytest.mark.parametrize("vad", ["energy", SILERO, "pauses"])
def test_joined_utterances_keep_their_own_texts_and_times(oasr, demo_manifest, tmp_path, read_rows, vad):
    samples, said = joined(demo_manifest, (0.7, 5.0, 1.2))
    recording = write(tmp_path / "joined.flac", samples)
    flags = ["--vad", vad, "--word-timestamps", "--wer", "-o", tmp_path / "out", *QUICK]
    rows = [{"id": "joined", "audio": str(recording), "text": " ".join(one.text for one in said)}]
    (tmp_path / "l.jsonl").write_text(json.dumps(rows[0]) + "\n")
    done = oasr("transcribe", tmp_path / "l.jsonl", *flags, *(["-f", "rttm"] if vad != "pauses" else []))
    assert done.code == 0, done.err
    (row,) = read_rows(tmp_path / "out")
    assert row["wer"]["rate"] < 6.0 and row["duration"] == pytest.approx(len(samples) / RATE, abs=0.01)
    middles = [(word["word"], (word["start"] + word["end"]) / 2) for word in row["words"]]
    for one in said:
        mine = " ".join(word for word, t in middles if one.start - 0.3 < t < one.end + 0.3)
        score = score_row(one.text, mine, "en")
        assert score.substitutions + score.deletions + score.insertions <= 3, (one.id, mine)
    assert [word for word, _ in middles] == row["pred_text"].split()
    assert all(a["end"] <= b["start"] + 1e-6 for a, b in zip(row["words"], row["words"][1:], strict=False))
    if vad != "pauses":
        regions = [line.split() for line in (tmp_path / "out" / "results.rttm").read_text().splitlines()]
        assert [[float(r[3]), float(r[3]) + float(r[4])] for r in regions] == [
            [pytest.approx(a, abs=2e-3), pytest.approx(b, abs=2e-3)] for a, b in row["speech"]
        ]
        for one in said:
            assert any(a < one.end and b > one.start for a, b in row["speech"]), one.id
    assert not (tmp_path / "out" / "partial.jsonl").exists()


@pytest.mark.weights
def test_none_is_an_error_row_that_names_the_limit(oasr, tmp_path):
    write(tmp_path / "long.wav", np.full(31 * RATE, 0.01, np.float32))
    done = oasr("transcribe", tmp_path / "long.wav", "--vad", "none")
    assert done.code == 1
    assert (
        done.rows[0]["error"]["stage"] == "admission" and "at most 30 s" in done.rows[0]["error"]["message"]
    )
