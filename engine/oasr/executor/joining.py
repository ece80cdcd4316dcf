"""The results of an utterance's windows → its own."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from oasr.types import RequestOutput, WordTiming

T = TypeVar("T")
Span = tuple[float, float]


def whole(parts: Sequence[RequestOutput], n_best: int, end_s: float) -> RequestOutput:
    """One result from those of all windows; the fullest window speaks for the language.

    Args:
        parts: results of the windows, in order, none of them failed. What two overlapping ones both said is
            out of their texts, tokens and times already, but not out of their scores and confidences.
        n_best: hypotheses asked for.
        end_s: where the utterance ends in the recording.

    A window that shares seconds with another has only its best hypothesis left, fitted to the other's.
    """
    main = max(parts, key=lambda p: len(p.tokens[0]))
    # Every token's posterior weighs the same, whichever window it fell into.
    weighed = [(p.confidence, len(p.tokens[0])) for p in parts if p.confidence is not None]
    total = sum(n for _, n in weighed)
    # A family may give more than was asked for, when its own options say so.
    hypotheses = best_sums(
        [_hypotheses(part) for part in parts], max(n_best, *(len(p.tokens) for p in parts))
    )
    return replace(
        main,
        text=hypotheses[0].text,
        tokens=tuple(h.tokens for h in hypotheses),
        scores=tuple(h.score for h in hypotheses),
        nbest_texts=tuple(h.text for h in hypotheses) if any(p.nbest_texts for p in parts) else (),
        words=_in_order(_concatenated([part.words for part in parts]), end_s),
        timestamps=_times(_concatenated([part.timestamps for part in parts]), end_s),
        confidence=sum(c * n for c, n in weighed) / total if total else None,
        finish_reason="length" if any(part.finish_reason == "length" for part in parts) else "stop",
        segments=tuple(segment for part in parts for segment in part.segments),
    )


@dataclass(frozen=True, slots=True)
class Whole:
    """A hypothesis of a window, or of several in a row."""

    score: float
    text: str
    tokens: tuple[int, ...]


def best_sums(windows: Sequence[Sequence[Whole]], n: int) -> list[Whole]:
    """The `n` best ways to take one hypothesis of each window, by the sum of their scores.

    Exact, since windows are decoded independently of each other: what is not among the `n` best of the
    first windows cannot come to be among those of more. Of equal sums the one that begins better is first.
    """
    best: list[tuple[float, tuple[Whole, ...]]] = [(0.0, ())]
    for window in windows:
        pairs = itertools.product(best, window)
        # nlargest is stable, and of the same order as sorting.
        sums = ((score + hypothesis.score, chosen, hypothesis) for (score, chosen), hypothesis in pairs)
        top = heapq.nlargest(n, sums, key=lambda one: one[0])
        best = [(score, (*chosen, hypothesis)) for score, chosen, hypothesis in top]
    return [
        Whole(score, join_texts([h.text for h in chosen]), tuple(t for h in chosen for t in h.tokens))
        for score, chosen in best
    ]


def _hypotheses(part: RequestOutput) -> list[Whole]:
    texts = part.nbest_texts or (part.text or "",)
    return [Whole(*one) for one in zip(part.scores, texts, part.tokens, strict=True)]


def _concatenated(lists: Sequence[tuple[T, ...] | None]) -> tuple[T, ...] | None:
    """All items in order; None when one of the lists is not known."""
    known = [items for items in lists if items is not None]
    return tuple(item for items in known for item in items) if len(known) == len(lists) else None


def _in_order(words: tuple[WordTiming, ...] | None, end_s: float) -> tuple[WordTiming, ...] | None:
    """The words with times inside the recording, and never running backwards where windows overlap."""
    if words is None:
        return None
    ordered: list[WordTiming] = []
    for word in words:
        if word.end > end_s:
            word = replace(word, end=end_s)
        if ordered and word.start < ordered[-1].end:
            before = ordered[-1]
            # A word that the one before outlasts ends with it: it must end after its start, too.
            start = before.end if before.end < word.end else max(word.start, before.start)
            word = replace(word, start=start, end=max(word.end, before.end))
        ordered.append(word)
    return tuple(ordered)


def _times(spans: tuple[Span, ...] | None, end_s: float) -> tuple[Span, ...] | None:
    """The tokens' times likewise; tokens that share their frames keep them."""
    if spans is None:
        return None
    starts = itertools.accumulate((start for start, _ in spans), max)
    ends = itertools.accumulate((min(end, end_s) for _, end in spans), max)
    return tuple(zip(starts, ends, strict=True))


def join_texts(texts: Sequence[str]) -> str:
    """Join window texts: a space between them, none between two characters of a space-less script."""
    joined = ""
    for text in texts:
        if joined and text and not (_spaceless(joined[-1]) and _spaceless(text[0])):
            joined += " "
        joined += text
    return joined


def _spaceless(char: str) -> bool:
    """True for CJK ideographs, kana, and their punctuation and full-width forms."""
    code = ord(char)
    return (
        0x3000 <= code <= 0x30FF
        or 0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF00 <= code <= 0xFFEF
    )
