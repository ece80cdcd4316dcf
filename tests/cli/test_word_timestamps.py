"""`oasr transcribe --word-timestamps`: words and token times in the rows, in either spelling of the flag."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.weights


def test_rows_carry_words(oasr, demo_manifest, tmp_path) -> None:
    def transcribe(*flags: str) -> list[dict]:
        done = oasr("transcribe", manifest, "--device", "cpu", *flags)
        assert done.code == 0, done.err
        return [json.loads(line) for line in done.out.splitlines()]

    row = json.loads(demo_manifest.read_text().splitlines()[0])
    row |= {"audio": str(demo_manifest.parent / row["audio"]), "words": "stale", "timestamps": "stale"}
    manifest = tmp_path / "list.jsonl"
    manifest.write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": "later", "offset": 0.5}) + "\n")
    first, later = transcribe("--word_timestamps")
    words = [word["word"] for word in first["words"]]
    assert words == first["pred_text"].split() and set(first["words"][0]) == {
        "word", "start", "end", "confidence",
    }  # fmt: skip
    assert all(0 <= w["start"] < w["end"] <= first["duration"] for w in first["words"])
    assert len(first["timestamps"]) >= len(words)
    # The stretch begins half a second in, and its words where they are in the recording.
    assert all(0.5 <= w["start"] < w["end"] <= 0.5 + later["duration"] for w in later["words"])
    last, same = first["words"][-1], later["words"][-1]
    assert last["word"] == same["word"] and abs(last["start"] - same["start"]) < 0.1
    manifest.write_text(json.dumps(row) + "\n")
    (plain,) = transcribe()
    assert "words" not in plain and "timestamps" not in plain and plain["pred_text"] == first["pred_text"]
