"""The table of error rates of long recordings: what is joined, what counts where, what fails a check."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import soundfile
from oasr.types import RequestOutput, WordTiming

DIGITS = ("--noise=-inf", "--pauses", "0.4", "--max-window", "8", "--normalizer", "basic")
HAVE_SILERO = find_spec("silero_vad") is not None and find_spec("onnxruntime") is not None


@pytest.fixture(scope="module")
def script(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("ci_long_speech", repo_root / "ci" / "long_speech.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci_long_speech"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def table(script, monkeypatch, capsys):
    """Runs the script: its exit code, and the lines of the table without head."""

    def run(*words: object) -> tuple[int, list[list[str]]]:
        monkeypatch.setattr(sys, "argv", ["long_speech", *map(str, words)])
        code = script.main()
        lines = capsys.readouterr().out.splitlines()[2:]
        return code, [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    return run


def test_rows_are_joined_with_the_pauses_that_were_asked_for(script, tmp_path) -> None:
    rows = []
    for number in range(3):
        rows.append({"id": f"u{number}", "audio": str(tmp_path / f"{number}.wav"), "text": f"t{number}"})
        soundfile.write(rows[-1]["audio"], np.full(800 * (number + 1), 0.25), 8000)
    args = SimpleNamespace(noise=-np.inf, pauses=(0.3, 2.0))
    found = script.join(rows, args, 8000, tmp_path / "joined.wav")
    samples, _ = soundfile.read(tmp_path / "joined.wav")
    assert [(p.start, p.end, p.text) for p in found.parts] == [
        (pytest.approx(a), pytest.approx(b), text)
        for a, b, text in ((0.3, 0.4, "t0"), (2.4, 2.6, "t1"), (2.9, 3.2, "t2"))
    ]
    assert len(samples) == 5.2 * 8000
    for part in found.parts:
        assert (samples[round(part.start * 8000) : round(part.end * 8000)] == 0.25).all()
    assert np.count_nonzero(samples) == 800 * 6
    assert [(r.offset, r.duration) for r in found.by_hand] == [
        (pytest.approx(a), pytest.approx(b - a)) for a, b in ((0.15, 0.8), (2.0, 2.75), (2.75, 3.6))
    ]


def test_neighbours_are_one_piece_up_to_a_length(script) -> None:
    parts = [script.Part(t, t + 4.0, str(t)) for t in range(0, 20, 4)]
    assert script.merged(parts, 0.0) == parts
    assert [(p.start, p.end, p.text) for p in script.merged(parts, 9.0)] == [
        (0, 8, "0 4"), (8, 16, "8 12"), (16, 20, "16")
    ]  # fmt: skip


def test_a_word_counts_for_the_part_that_it_is_nearest_to(script) -> None:
    parts = [script.Part(1.0, 2.0, "one"), script.Part(4.0, 5.0, "two")]
    said = {"a": 0.0, "b": 2.8, "c": 3.0, "d": 9.0}
    words = tuple(WordTiming(word, start, start + 0.2, 1.0) for word, start in said.items())
    heard = script.at_their_places(parts, RequestOutput("x", text="a b c d", words=words))
    assert heard == [("one", "a b"), ("two", "c d")]


def test_a_check_is_about_the_rate_by_hand(script, capsys) -> None:
    def finding(way: str, wrong: int, placed: int | None = None):
        scores = [None if n is None else script.Score(n, 0, 0, 1000) for n in (wrong, placed)]
        return script.Finding("all", way, *scores)

    hand = finding(script.BY_HAND, 20)
    assert script.worse([hand, finding("pauses", 25), finding("energy", 20, 25)]) == []
    assert script.worse([hand, finding("pauses", 26)]) == ["all, pauses: 2.60 %, bound 2.50 %"]
    assert len(script.worse([hand, finding("pauses", 20, 26)])) == 1


def test_joined_digits_come_back_at_their_own_places(table, repo_root) -> None:
    digits = repo_root / "manifests" / "digits.jsonl"
    model = repo_root / "tests" / "checkpoints" / "digits-conformer"
    code, lines = table(digits, "--model", model, "--stride", 4, "--vad", "pauses", *DIGITS)
    assert [line[:2] for line in lines] == [["digits-000 + 14", "by hand"], ["digits-000 + 14", "pauses"]]
    hand, whole = lines
    assert hand[4] == whole[4] and int(hand[6]) == 15 > int(whole[6]) > 5
    assert float(hand[2]) == float(hand[5]) < 3 and float(whole[2]) < 5 and float(whole[5]) < 5
    assert code == 0


@pytest.mark.weights
def test_long_recordings_are_heard_as_well_as_their_pieces(table, shared_speech) -> None:
    ways = ("pauses", "silero") if HAVE_SILERO else ("pauses",)
    listed = shared_speech / "long" / "long.jsonl"
    code, lines = table(listed, "--most", 40, "--option", "window=auto", "--vad", *ways, "--check")
    assert code == 0
    names = [json.loads(line)["id"] for line in listed.read_text("utf-8").splitlines()]
    assert [line[0] for line in lines] == [*names * (1 + len(ways)), *["all"] * (1 + len(ways))]
    assert all(int(line[4]) > 200 for line in lines[-len(ways) - 1 :])
