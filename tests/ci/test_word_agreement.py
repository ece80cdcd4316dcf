"""The comparison of word times: what is paired, what is printed, what fails a check."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "ci" / "word_agreement.py"


@pytest.fixture(scope="module")
def agreement():
    spec = importlib.util.spec_from_file_location("word_agreement", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(text: str, shift_s: float = 0.0) -> list[dict]:
    return [
        {"word": word, "start": i + shift_s, "end": i + 0.5 + shift_s} for i, word in enumerate(text.split())
    ]


def test_words_are_paired_where_the_texts_are_equal(agreement) -> None:
    pairs = agreement.paired(words("Hello, the - cat sat"), words("hello the dog Sat."))
    assert [(a["word"], b["word"]) for a, b in pairs] == [
        ("Hello,", "hello"),
        ("the", "the"),
        ("sat", "Sat."),
    ]


@pytest.mark.parametrize(("shift_s", "code"), [(0.0, 0), (0.02, 0), (0.021, 1), (0.2, 1)])
def test_a_check_fails_beyond_its_limits(agreement, monkeypatch, capsys, tmp_path, shift_s, code) -> None:
    files = []
    for name, shift in (("ours", 0.0), ("theirs", shift_s)):
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text(json.dumps({"id": "u", "words": words("a b c d", shift)}) + "\n")
    monkeypatch.setattr(sys, "argv", ["x", "compare", *map(str, files), "--check"])
    assert agreement.main() == code
    facts = json.loads(capsys.readouterr().out)
    assert facts["words"] == 4 and facts["of"] == [4, 4]
    assert facts["start"]["median_ms"] == facts["end"]["max_ms"] == round(1000 * shift_s, 1)
    assert facts["start"]["within_120_ms"] == (100.0 if shift_s < 0.12 else 0.0)


def test_five_percent_may_be_far_off(agreement, monkeypatch, capsys, tmp_path) -> None:
    text = " ".join(f"w{i}" for i in range(40))
    for wrong, code in ((2, 0), (3, 1)):
        theirs = words(text)
        for word in theirs[:wrong]:
            word["start"] += 0.3
        for name, listed in (("a", words(text)), ("b", theirs)):
            (tmp_path / name).write_text(json.dumps({"id": "u", "words": listed}) + "\n")
        monkeypatch.setattr(
            sys, "argv", ["x", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--check"]
        )
        assert agreement.main() == code
