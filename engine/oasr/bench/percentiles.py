"""Percentiles and spreads of measured values."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

LATENCY_PERCENTILES = (50, 90, 95, 99)


def percentile(values: Sequence[float], q: float) -> float:
    """The `q`-th percentile (0..100) of `values`, which need not be sorted.

    Linear interpolation between the two nearest order statistics: definition 7 of Hyndman and Fan (1996),
    the default of numpy and R. With n values, those above percentile 100·(n-2)/(n-1) lean on the largest.

    Raises:
        ValueError: no values, or `q` outside 0..100.
    """
    if not values or not 0 <= q <= 100:
        raise ValueError(f"percentile {q} of {len(values)} values: expected 0..100 of at least one value")
    ordered = sorted(values)
    position = (len(ordered) - 1) * q / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def latency_percentiles(values: Sequence[float]) -> dict[str, float] | None:
    """`{"p50": ..., "p90": ..., "p95": ..., "p99": ..., "max": ...}`; None without values."""
    if not values:
        return None
    return {f"p{q}": percentile(values, q) for q in LATENCY_PERCENTILES} | {"max": max(values)}


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, middle and greatest of repeated measurements."""

    min: float
    median: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread | None:
        """The spread of the values that are there; None when one is missing or there are none."""
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        return cls(min(known), percentile(known, 50), max(known))

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values in bins of one width; bin i covers [edges[i], edges[i + 1])."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Histogram:
        """Bins of 1, 2 or 5 times a power of ten, as wide as Freedman and Diaconis (1981) say.

        Their width is kept within an eighth and a twentieth of the range before it is rounded down, so that
        few values still give a picture and an outlier does not give hundreds of bins.

        Raises:
            ValueError: no values.
        """
        low, high = min(values), max(values)
        spread = percentile(values, 75) - percentile(values, 25)
        wanted = min(2 * spread / len(values) ** (1 / 3), (high - low) / 8)
        # A millisecond at least, because equal values have no range.
        width = round_step(max(wanted, (high - low) / 20, 1e-3), up=False)
        # The double nearest to the decimal number, as 0.7 itself is: 35 * 0.02 lies beside it.
        decimals = max(0, -math.floor(math.log10(width)))
        first, last = math.floor(low / width), math.floor(high / width) + 1
        # A quotient may round across a whole number too.
        while round(first * width, decimals) > low:
            first -= 1
        while round(last * width, decimals) <= high:
            last += 1
        edges = tuple(round(i * width, decimals) for i in range(first, last + 1))
        bins = [0] * (last - first)
        for value in values:
            bins[bisect_right(edges, value) - 1] += 1
        return cls(edges, tuple(bins))

    @property
    def bars(self) -> list[tuple[float, float, int]]:
        """(from, to, count) of each bin."""
        return [(a, b, n) for (a, b), n in zip(pairwise(self.edges), self.counts, strict=True)]


def round_step(value: float, up: bool = True) -> float:
    """The nearest of 1, 2, 5 × a power of ten that is at least, or at most, `value` (> 0)."""
    power = 10.0 ** math.floor(math.log10(value))
    # With some room: rounding must not make a step the next one.
    if up:
        return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))
    return next(step * power for step in (10, 5, 2, 1) if step * power <= value * (1 + 1e-9))
