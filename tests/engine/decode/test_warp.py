"""The best path through a matrix of scores, against a table that is filled cell by cell."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.native import extension


def warp(scores) -> list[tuple[int, int]]:
    return [tuple(span) for span in extension().alignment.warp(np.asarray(scores, np.float32)).tolist()]


def oracle(scores: np.ndarray) -> list[tuple[int, int]]:
    """Costs in a table with a border of infinities; of equal steps diagonal, up, left in that order."""
    tokens, frames = scores.shape
    cost = np.full((tokens + 1, frames + 1), math.inf)
    cost[0, 0] = 0.0
    step = {}
    for i in range(1, tokens + 1):
        for j in range(1, frames + 1):
            choices = [(cost[i - 1, j - 1], (1, 1)), (cost[i - 1, j], (1, 0)), (cost[i, j - 1], (0, 1))]
            best, step[i, j] = min(choices, key=lambda choice: choice[0])  # the first of equals
            cost[i, j] = best - float(scores[i - 1, j - 1])
    path, at = [], (tokens, frames)
    while at != (0, 0):
        path.append((at[0] - 1, at[1] - 1))
        at = (at[0] - step[at][0], at[1] - step[at][1])
    visited = [[j for i, j in path if i == token] for token in range(tokens)]
    return [(min(frames), max(frames) + 1) for frames in visited]


@settings(max_examples=150, deadline=None)
@given(
    tokens=st.integers(1, 9),
    frames=st.integers(1, 14),
    seed=st.integers(0, 10**6),
    grid=st.sampled_from([0, 1, 2, 1000]),  # few distinct scores make many ties
)
def test_spans_equal_the_oracle(tokens: int, frames: int, seed: int, grid: int) -> None:
    rng = np.random.default_rng(seed)
    scores = (
        rng.normal(size=(tokens, frames)) if grid == 1000 else rng.integers(0, grid + 1, (tokens, frames))
    )
    assert warp(scores) == oracle(np.asarray(scores, np.float32))


def test_ties_go_by_both_then_by_a_token_then_by_a_frame() -> None:
    assert warp(np.zeros((3, 3))) == [(0, 1), (1, 2), (2, 3)]
    # Backwards from the end, diagonal steps are used up first: what is left over lies at the start.
    assert warp(np.zeros((2, 4))) == [(0, 3), (3, 4)]
    assert warp(np.zeros((4, 2))) == [(0, 1), (0, 1), (0, 1), (1, 2)]


def test_the_path_follows_the_scores() -> None:
    scores = np.full((3, 10), -1.0)
    scores[0, :2] = scores[1, 2:9] = scores[2, 9] = 1.0
    assert warp(scores) == [(0, 2), (2, 9), (9, 10)]
    assert warp([[5.0]]) == [(0, 1)] and warp([[1.0, 2.0]]) == [(0, 2)] and warp([[1], [2]]) == [(0, 1)] * 2


def test_long_sums_stay_exact() -> None:
    """Float sums over thousands of cells would lose the small differences at their end."""
    scores = np.full((2, 3000), 1e4, np.float32)
    scores[0, 2000:] -= 1e-3
    scores[1, :2000] -= 1e-3
    assert warp(scores) == oracle(scores)


def test_poisoned_scores_still_give_a_path() -> None:
    for poison in (math.nan, math.inf, -math.inf):
        scores = np.zeros((3, 7))
        scores[1, 2:5] = poison
        spans = warp(scores)
        assert spans[0][0] == 0 and spans[-1][1] == 7
        assert all(a[0] <= b[0] and a[1] <= b[1] and a[1] > a[0] for a, b in pairwise(spans))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (1, 2, 3)])
def test_a_matrix_with_something_in_it_is_needed(shape) -> None:
    with pytest.raises(ValueError, match="scores: expected"):
        extension().alignment.warp(np.zeros(shape, np.float32))


def test_strided_and_double_arrays_are_taken() -> None:
    scores = np.random.default_rng(0).integers(0, 5, (6, 20))
    expected = warp(scores)
    assert extension().alignment.warp(scores.astype(np.float64)).tolist() == [list(s) for s in expected]
    wide = np.repeat(scores.astype(np.float32), 2, axis=1)
    assert [tuple(s) for s in extension().alignment.warp(wide[:, ::2]).tolist()] == expected
