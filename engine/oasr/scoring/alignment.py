"""Which unit of a hypothesis stands for which unit of its reference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple


class Aligned(NamedTuple):
    """One step of an alignment.

    Attributes:
        kind: "equal", "substitute", "delete" or "insert".
        reference: its unit; empty for an insertion.
        hypothesis: its unit; empty for a deletion.
    """

    kind: str
    reference: str
    hypothesis: str


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Aligned]:
    """A smallest alignment of two lists of units: the one whose errors `count_errors` counts.

    A unit holds no white space.
    """
    import jiwer

    found = jiwer.process_words([" ".join(reference)], [" ".join(hypothesis)])
    steps: list[Aligned] = []
    for chunk in found.alignments[0]:
        expected = reference[chunk.ref_start_idx : chunk.ref_end_idx]
        heard = hypothesis[chunk.hyp_start_idx : chunk.hyp_end_idx]
        # An insertion or a deletion has units on one side only.
        pairs = zip_longest(expected, heard, fillvalue="")
        steps += [Aligned(chunk.type, *pair) for pair in pairs]
    return steps
