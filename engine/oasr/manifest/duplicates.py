"""Two rows with one id, found among millions in eight bytes a row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_GROUPS_A_PASS = 1024  # a pass holds the ids of these; a list may repeat every one of its ids
_hash = hash  # 64 bits, keyed afresh in every process


@dataclass(frozen=True, slots=True)
class IdScan:
    """What one look at all ids found.

    Attributes:
        count: number of rows.
        pair: positions of the first row that repeats an id and, before it, of the row that it
            repeats; None when all ids differ.
        id: the repeated id.
        repeats: how many rows repeat an id.
    """

    count: int
    pair: tuple[int, int] | None = None
    id: str = ""
    repeats: int = 0


def scan_ids(blocks: Callable[[], Iterable[list[str]]]) -> IdScan:
    """Look for repeated ids.

    Only hashes are kept. Equal hashes are suspects; a second pass, made only when there are any,
    compares the ids themselves, so that two ids which share a hash are no false alarm.

    Args:
        blocks: starts a pass over all ids, in order, in lists of any size.
    """
    hashes = _hashes(blocks())
    repeats = _repeats(hashes)
    for suspects in _suspects(hashes) if repeats else ():
        found = _true_pair(blocks(), suspects)
        if found is not None:
            return IdScan(len(hashes), found[:2], found[2], repeats)
    return IdScan(len(hashes))


def count_if_distinct(blocks: Iterable[Sequence[Hashable] | None]) -> int | None:
    """How many values there are, when all of them surely differ; None when a repeat is possible.

    Args:
        blocks: values of one kind, comparable with each other; a None among them ends the search.
    """
    try:
        hashes = _hashes(_given(blocks))
    except _NotComparableError:
        return None
    return None if _repeats(hashes) else len(hashes)


class _NotComparableError(Exception):
    """A block came without values."""


def _given(blocks: Iterable[Sequence[Hashable] | None]) -> Iterator[Sequence[Hashable]]:
    for block in blocks:
        if block is None:
            raise _NotComparableError
        yield block


def _hashes(blocks: Iterable[Sequence[Hashable]]) -> np.ndarray:
    """(n,) int64 hashes of all values."""
    import numpy as np

    parts = [np.fromiter(map(_hash, block), np.int64, len(block)) for block in blocks]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _repeats(hashes: np.ndarray) -> int:
    """How many hashes were there before."""
    import numpy as np

    ranked = np.sort(hashes)
    return int(np.count_nonzero(ranked[1:] == ranked[:-1]))


def _suspects(hashes: np.ndarray) -> Iterator[np.ndarray]:
    """(n,) positions, ascending, of rows that share a hash; a bounded number of hashes at a time.

    Hashes come in the order of the rows that first repeat them, so that the first repeated id of
    the list is the one that is found, in one pass, as long as hashes do not collide.
    """
    import numpy as np

    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    ends = np.append(starts[1:], len(ranked))
    shared = ends - starts > 1
    starts, ends = starts[shared], ends[shared]
    # `order` is stable, so the second of a group is the row that first repeats it.
    by_repeat = np.argsort(order[starts + 1], kind="stable")
    for i in range(0, len(by_repeat), _GROUPS_A_PASS):
        chosen = by_repeat[i : i + _GROUPS_A_PASS]
        yield np.sort(np.concatenate([order[a:b] for a, b in zip(starts[chosen], ends[chosen], strict=True)]))


def _true_pair(blocks: Iterable[list[str]], suspects: np.ndarray) -> tuple[int, int, str] | None:
    """(first, second, id) of the first suspect whose id was seen before."""
    seen: dict[str, int] = {}
    wanted = iter(suspects)
    position = next(wanted, None)
    base = 0
    for block in blocks:
        while position is not None and position < base + len(block):
            name = block[position - base]
            if name in seen:
                return seen[name], int(position), name
            seen[name] = int(position)
            position = next(wanted, None)
        base += len(block)
    return None
