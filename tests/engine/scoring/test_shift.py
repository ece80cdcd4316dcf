from __future__ import annotations

import random

import pytest
from oasr.scoring.report import RuleChoice, ScoredRow, score_samples
from oasr.scoring.samples import Sample
from oasr.scoring.shift import Shift, find_shift

WORDS = [f"w{i}" for i in range(200)]


def rows(references: list[str], hypotheses: list[str | None]) -> list[ScoredRow]:
    samples = [Sample(f"u{i}", r, (h,)) for i, (r, h) in enumerate(zip(references, hypotheses, strict=True))]
    return score_samples(samples, 0, RuleChoice(normalizer="none"))


@pytest.fixture
def references() -> list[str]:
    rng = random.Random(1)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(30)]


@pytest.mark.parametrize("offset", [1, -1, 2, -2])
def test_a_list_that_slipped_is_found_with_its_direction(references, offset):
    turned = references[offset:] + references[:offset]
    found = find_shift(rows(references, turned))
    assert found is not None and found.offset == offset
    assert found.rows == 30 - abs(offset) and found.bad == 30
    assert found.first == ("u0" if offset > 0 else f"u{-offset}")


def test_a_line_lost_in_the_middle_is_found(references):
    slipped = references[:20] + references[21:] + ["w1"]
    assert find_shift(rows(references, slipped)) == Shift(1, 9, 10, "u20")


def test_texts_that_are_only_bad_are_no_shift(references):
    rng = random.Random(2)
    noise = [" ".join(rng.choices(WORDS, k=6)) for _ in references]
    assert find_shift(rows(references, noise)) is None
    assert find_shift(rows(references, references)) is None
    assert find_shift(rows(references, [None] * 30)) is None
    assert find_shift(rows(references, [""] * 30)) is None


def test_single_words_that_match_a_neighbour_by_chance_are_no_shift():
    rng = random.Random(5)
    digits = [str(rng.randrange(10)) for _ in range(300)]
    heard = [str(rng.randrange(10)) for _ in range(300)]
    assert find_shift(rows(digits, heard)) is None


def test_two_swapped_rows_are_no_shift(references):
    swapped = [references[1], references[0], *references[2:]]
    assert find_shift(rows(references, swapped)) is None


def test_single_rows_far_apart_are_no_shift(references):
    odd = [references[i + 1] if i in (3, 11, 20) else text for i, text in enumerate(references)]
    assert find_shift(rows(references, odd)) is None


def test_the_warning_names_rows_and_direction():
    assert Shift(-1, 5, 6, "u1").describe() == (
        "are the texts beside the right ids? 5 of 6 rows that are mostly wrong match the reference one row "
        "further up, the first of them u1; a line may have been lost or added"
    )
    assert "the reference 2 rows further down" in Shift(2, 5, 6, "u1").describe()
