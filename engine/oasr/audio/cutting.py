"""Cutting one window after the other off a recording that is still growing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oasr.audio.segment import LEVEL_REACH_S, next_cut, sight

OVERLAP_S, LEAST_OVERLAP_S = 3.0, 0.5
"""What two windows share around a cut where the speaker does not pause, a quarter of the limit at most; with
less than the second they share nothing, since that would hold no whole word."""


@dataclass(frozen=True, slots=True)
class AudioWindow:
    """Samples [start, start + len(samples)) of a recording.

    Attributes:
        start: sample number in the recording.
        samples: (n,) float32.
        cut: where this window takes over from the one before, when the two share samples; else None.
    """

    start: int
    samples: np.ndarray
    cut: int | None = None


class Tail:
    """The end of a growing recording, by sample numbers of the recording: what may still be needed of it."""

    def __init__(self) -> None:
        """An empty recording."""
        self._parts: list[np.ndarray] = []
        self.begin = self.end = 0

    def add(self, samples: np.ndarray) -> None:
        """The recording goes on with `samples`."""
        if len(samples):
            self._parts.append(samples)
            self.end += len(samples)

    def slice(self, begin: int, end: int) -> np.ndarray:
        """Samples [begin, end), which must not have been dropped."""
        at, found = self.begin, []
        for part in self._parts:
            low, high = max(begin - at, 0), min(end - at, len(part))
            if low < high:
                found.append(part[low:high])
            at += len(part)
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros(0, np.float32)

    def drop_before(self, position: int) -> None:
        """Let go of what lies wholly before `position`."""
        while self._parts and self.begin + len(self._parts[0]) <= position:
            self.begin += len(self._parts.pop(0))


class Cutter:
    """Cuts one window after the other off a stretch that is longer than the limit.

    Attributes:
        start: where the next window begins.
    """

    def __init__(self, tail: Tail, sample_rate: int, limit: int) -> None:
        """`tail` holds the recording; limit in samples."""
        self.start = 0
        self.limit, self.sight = limit, sight(limit, sample_rate)
        self.context = round(LEVEL_REACH_S * sample_rate) + 1
        self._tail, self._rate = tail, sample_rate
        # No cut is nearer to the start of its window than a quarter of the limit, and half an overlap is an
        # eighth of it at most: so every window begins behind the one before.
        overlap_s = min(OVERLAP_S, limit / 4 / sample_rate)
        self._half_overlap = 0 if overlap_s < LEAST_OVERLAP_S else int(overlap_s * sample_rate) // 2
        self._cut: int | None = None

    def begin(self, start: int) -> None:
        """The next window begins at `start` and shares nothing with the one before."""
        self.start, self._cut = start, None

    def window(self, end: int) -> AudioWindow:
        """The window from `start` to `end`."""
        return AudioWindow(self.start, self._tail.slice(self.start, end), self._cut)

    def cut(self, end: int) -> AudioWindow:
        """The next window of a stretch that reaches to `end`, beyond the limit, or goes on even further."""
        base = max(self._tail.begin, self.start - self.context)
        seen = self._tail.slice(base, min(end, self.start + self.sight + self.context))
        cut, in_pause = next_cut(seen, self.start - base, self._rate, self.limit)
        cut += base
        half = 0 if in_pause else self._half_overlap
        # A cut may be as late as the limit: then less, or nothing, of what is shared lies behind it.
        window = self.window(min(cut + half, self.start + self.limit, end))
        self.start, self._cut = cut - half, cut if half else None
        return window
