"""Long recordings of real speech against the same speech cut by hand."""

from __future__ import annotations

import json
from functools import reduce
from importlib.util import find_spec
from operator import add
from pathlib import Path

import pytest
from oasr import Engine, Utterance
from oasr.scoring.wer import Score, score_row

pytestmark = pytest.mark.weights

SILERO = pytest.param(
    "silero",
    marks=pytest.mark.skipif(
        find_spec("silero_vad") is None or find_spec("onnxruntime") is None, reason="needs the extra vad"
    ),
)


def chapters(folder: Path, most_s: float) -> list[tuple[Utterance, list[Utterance]]]:
    """Each recording of the collection, at most `most_s` seconds of it, whole and cut by hand."""
    found = []
    for line in (folder / "long" / "long.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        audio = str(folder / "long" / entry["audio"])
        parts = [s for s in entry["segments"] if s["end"] <= most_s]
        rows = [
            Utterance(
                f"{entry['id']}-{number}",
                audio,
                offset=s["start"],
                duration=s["end"] - s["start"],
                text=s["text"],
            )
            for number, s in enumerate(parts)
        ]
        text = " ".join(s["text"] for s in parts)
        found.append((Utterance(entry["id"], audio, duration=parts[-1]["end"], text=text), rows))
    return found


def pooled(engine: Engine, rows: list[Utterance]) -> Score:
    """The error rate over all rows."""
    outputs = list(engine.transcribe(rows))
    assert all(output.ok for output in outputs)
    scores = (score_row(r.text or "", o.text or "", "en") for r, o in zip(rows, outputs, strict=True))
    return reduce(add, scores)


MOST_S = 40.0


def heard(rows: list[Utterance], vad: str = "pauses") -> Score:
    with Engine(model="tiny.en", device="cpu", vad=vad, decode_options={"window": "auto"}) as engine:
        return pooled(engine, rows)


@pytest.fixture(scope="module")
def by_hand(shared_speech: Path) -> Score:
    """The score of the parts that were cut by hand."""
    return heard([part for _, parts in chapters(shared_speech, MOST_S) for part in parts])


@pytest.mark.parametrize("vad", ["pauses", SILERO])
def test_a_long_recording_is_heard_as_well_as_its_parts(
    shared_speech: Path, by_hand: Score, vad: str
) -> None:
    score = heard([whole for whole, _ in chapters(shared_speech, MOST_S)], vad)
    assert score.ref_units == by_hand.ref_units > 200
    assert (score.rate or 0.0) <= (by_hand.rate or 0.0) + 0.5
