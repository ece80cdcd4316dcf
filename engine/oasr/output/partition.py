"""A sequence cut into groups of least total cost: lines of a cue, and cues of a stretch of speech."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable


def cheapest_groups(count: int, costs: Callable[[int], Iterable[float]]) -> list[tuple[int, int]]:
    """The (begin, end) pairs that cover `count` items in order with the least sum of costs.

    The classic shortest path over cutting points; takes one step a candidate group.

    Args:
        count: number of items.
        costs: begin → the cost of items begin..begin, begin..begin+1, … (at least the first), for as
            long as such a group is allowed. Of equal sums the one with the shorter first group wins.
    """
    best, came_from = [0.0] + [math.inf] * count, [0] * (count + 1)
    for begin in range(count):
        for end, cost in enumerate(costs(begin), begin + 1):
            if best[begin] + cost < best[end]:
                best[end], came_from[end] = best[begin] + cost, begin
    groups, end = [], count
    while end > 0:
        groups.append((came_from[end], end))
        end = came_from[end]
    return groups[::-1]
