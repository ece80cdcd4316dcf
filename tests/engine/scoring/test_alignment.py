from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.scoring.alignment import Aligned, align
from oasr.scoring.wer import count_errors

UNITS = st.lists(st.sampled_from(["a", "b", "c", "aa", "ä", "字"]), max_size=9)


@settings(deadline=None)
@given(UNITS, UNITS)
def test_an_alignment_spells_both_texts_and_has_the_counted_errors(reference, hypothesis):
    steps = align(reference, hypothesis)
    assert [step.reference for step in steps if step.reference] == reference
    assert [step.hypothesis for step in steps if step.hypothesis] == hypothesis
    kinds = Counter(step.kind for step in steps)
    assert (kinds["substitute"], kinds["delete"], kinds["insert"]) == count_errors(reference, hypothesis)
    for kind, expected, heard in steps:
        assert kind == (
            "insert"
            if not expected
            else "delete"
            if not heard
            else "equal"
            if expected == heard
            else "substitute"
        )


def test_the_four_kinds():
    assert align([*"abcdfg"], [*"axdfge"]) == [
        Aligned("equal", "a", "a"),
        Aligned("substitute", "b", "x"),
        Aligned("delete", "c", ""),
        Aligned("equal", "d", "d"),
        Aligned("equal", "f", "f"),
        Aligned("equal", "g", "g"),
        Aligned("insert", "", "e"),
    ]
    assert align([], []) == []
