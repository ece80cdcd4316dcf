"""The timed stretches of one transcript, from the engine's result or, without it, from the result row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from oasr.types import RequestOutput, finite

MAX_SECONDS = 1e9
"""As for the times of an input list: what is beyond is no position in a recording."""
_OFFSET_KEYS = ("offset", "start")
_SAME_S = 0.01
"""Lists often state durations in hundredths: within that, a row says the same as the engine."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch with text; times in seconds of the original recording, words as in a result row."""

    start: float
    end: float
    text: str
    words: tuple[Mapping[str, Any], ...] = ()


def segments_of(row: Mapping[str, Any], output: RequestOutput | None) -> list[Segment]:
    """The segments that hold text, in order, times in whole milliseconds; words are those of `row`.

    With and without `output` they are the same, once `row` went through `result_row`: what its other
    keys do not tell, its `segments` do. Each word goes to the segment whose text holds it.
    """
    spans = _spans(row, output)
    words: Sequence[Mapping[str, Any]] = row.get("words") or ()
    groups: list[list[Mapping[str, Any]]] = [[] for _ in spans]
    for word, place in zip(words, _places(words, spans), strict=True) if spans else ():
        groups[place].append(word)
    return [Segment(*span, tuple(group)) for span, group in zip(spans, groups, strict=True)]


def _places(words: Sequence[Mapping[str, Any]], spans: Sequence[tuple[float, float, str]]) -> list[int]:
    """The segment of each word.

    Windows may share seconds of speech, and their texts then meet at a word and not at a time. So words are
    counted off along the texts; where they are not those of the texts, a word's middle decides.
    """
    names, texts = ([_solid(word["word"]) for word in words], [_solid(text) for _, _, text in spans])
    if "".join(names) == "".join(texts):
        ends = list(accumulate(map(len, texts)))
        begins = [0, *accumulate(map(len, names))][:-1]
        return [min(bisect_right(ends, begin), len(spans) - 1) for begin in begins]
    starts = [start for start, _, _ in spans]
    middles = (((finite(word["start"]) or 0.0) + (finite(word["end"]) or 0.0)) / 2 for word in words)
    return [max(0, bisect_right(starts, middle) - 1) for middle in middles]


def _solid(text: object) -> str:
    """`text` without its white space."""
    return "".join(str(text).split())


def segment_records(row: Mapping[str, Any], output: RequestOutput) -> list[dict[str, Any]]:
    """What `segments` of a result row must say: nothing where its other keys tell the one segment."""
    spans = _spans(row, output)
    if spans == _spans(row, None):
        return []
    return [{"start": start, "end": end, "text": text} for start, end, text in spans]


def _spans(row: Mapping[str, Any], output: RequestOutput | None) -> list[tuple[float, float, str]]:
    """(start, end, text) of each segment."""
    whole = _whole(row)
    if output is not None:
        told = [(_seconds(start), _seconds(end), text) for start, end, text in output.segments]
    else:
        stored = row.get("segments") or ()
        told = [(_seconds(s["start"]), _seconds(s["end"]), str(s["text"])) for s in stored]
    spans = [(start, max(start, end), text.strip()) for start, end, text in told if text.strip()]
    # The row's own keys count then, so that a file is the same with the engine's result at hand or without.
    if not spans or (len(spans) == 1 and _agree(spans[0], whole)):
        return [whole] if whole[2] else []
    return spans


def _whole(row: Mapping[str, Any]) -> tuple[float, float, str]:
    """The utterance as one segment, as far as its own keys tell its place."""
    start = next((_seconds(row[key]) for key in _OFFSET_KEYS if row.get(key) is not None), 0.0)
    return start, _seconds(start + _seconds(row.get("duration"))), str(row.get("pred_text") or "").strip()


def _agree(one: tuple[float, float, str], other: tuple[float, float, str]) -> bool:
    return abs(one[0] - other[0]) < _SAME_S and abs(one[1] - other[1]) < _SAME_S and one[2] == other[2]


def _seconds(value: object) -> float:
    """A number, or the decimal string that a list may have, as seconds to the millisecond; else 0."""
    try:
        number = finite(float(value)) if isinstance(value, str) else finite(value)
    except ValueError:
        number = None
    return round(min(max(0.0, number or 0.0), MAX_SECONDS), 3)
