"""The timed pieces of one transcript, from the engine's result or, without it, from the result row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasr.output.rows import word_record
from oasr.types import RequestOutput, finite


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch with text; times in seconds of the original recording, words as in a result row."""

    start: float
    end: float
    text: str
    words: tuple[Mapping[str, Any], ...] = ()


def segments_of(row: Mapping[str, Any], output: RequestOutput | None) -> list[Segment]:
    """The segments that hold text, in order; one for the whole utterance when none are known.

    Each word goes to the segment that its middle falls into.
    """
    spans = [span for span in (output.segments if output else ()) if span[2].strip()]
    text = str(row.get("pred_text") or "").strip()
    if not spans and text:
        start = finite(row.get("offset")) or 0.0
        length = output.duration_s if output else finite(row.get("duration")) or 0.0
        spans = [(start, start + length, text)]
    words = _words(row, output)
    starts = [start for start, _, _ in spans]
    groups: list[list[Mapping[str, Any]]] = [[] for _ in spans]
    for word in words if spans else ():
        middle = ((word["start"] or 0.0) + (word["end"] or 0.0)) / 2
        groups[max(0, bisect_right(starts, middle) - 1)].append(word)
    return [
        Segment(start, end, text.strip(), tuple(group))
        for (start, end, text), group in zip(spans, groups, strict=True)
    ]


def _words(row: Mapping[str, Any], output: RequestOutput | None) -> list[Mapping[str, Any]]:
    if output is not None:
        return [word_record(word) for word in output.words or ()]
    return list(row.get("words") or ())
