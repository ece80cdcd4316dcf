"""Texts beside the wrong ids: a list that slipped by a row when ids and texts were put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from oasr.scoring.report import ScoredRow
from oasr.scoring.wer import count_errors

_OFFSETS = (1, -1, 2, -2)
_BAD = 0.5  # errors a reference unit from which on a text may belong to another row
_BETTER = 0.5  # share of the errors that may be left beside the other row's reference
_RUN = 3  # rows one after the other
_SHARE = 0.5  # of the bad rows looked at
_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class Shift:
    """What was found.

    Attributes:
        offset: the texts belong to the reference so many rows further down the file; negative, up.
        rows: bad rows that the shift explains, of `bad` that were looked at.
        first: id of the first of them.
    """

    offset: int
    rows: int
    bad: int
    first: str

    def describe(self) -> str:
        """The warning, in one sentence."""
        way = "further down" if self.offset > 0 else "further up"
        steps = "one row" if abs(self.offset) == 1 else f"{abs(self.offset)} rows"
        return (
            f"are the texts beside the right ids? {self.rows} of {self.bad} rows that are mostly wrong match "
            f"the reference {steps} {way}, the first of them {self.first}; a line may have been lost or added"
        )


def find_shift(rows: Sequence[ScoredRow]) -> Shift | None:
    """The shift that explains most of the bad rows, in the order of the hypothesis file; None = none does.

    Rows are matched by id, so a shift comes from outside: texts were put to ids line by line. A short
    utterance may match a neighbour's reference by chance; a shift is several rows on end and most bad rows.
    """
    bad = [i for i, row in enumerate(rows) if row.hypothesis and _is_bad(row)][:_LOOKED_AT]
    if len(bad) < _RUN:
        return None
    found = [_explained(rows, bad, offset) for offset in _OFFSETS]
    # Of two that explain as much, the first of _OFFSETS, which is the smaller shift.
    best = max(range(len(_OFFSETS)), key=lambda k: len(found[k]))
    explained = found[best]
    if len(explained) < _SHARE * len(bad) or _longest_run(explained) < _RUN:
        return None
    return Shift(_OFFSETS[best], len(explained), len(bad), rows[explained[0]].sample.id)


def _explained(rows: Sequence[ScoredRow], bad: Sequence[int], offset: int) -> list[int]:
    """The bad rows whose text is much closer to the reference `offset` rows on."""
    found = []
    for i in bad:
        row, other = rows[i], i + offset
        heard = row.rules.units(row.hypothesis or "")
        if 0 <= other < len(rows):
            reference = row.rules.units(rows[other].sample.reference)
            if sum(count_errors(reference, heard)) <= _BETTER * row.score.errors:
                found.append(i)
    return found


def _is_bad(row: ScoredRow) -> bool:
    return row.score.errors >= _BAD * row.score.ref_units > 0


def _longest_run(positions: Sequence[int]) -> int:
    longest = run = 1
    for before, here in pairwise(positions):
        run = run + 1 if here == before + 1 else 1
        longest = max(longest, run)
    return longest
