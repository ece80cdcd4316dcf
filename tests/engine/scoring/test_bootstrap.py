"""The bootstrap against a plain loop over the same draws, full enumeration, and the normal approximation."""

from __future__ import annotations

import itertools
import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.errors import OptionsError
from oasr.scoring import bootstrap
from oasr.scoring.bootstrap import Comparison, Resampling, compare, rate_interval
from oasr.scoring.wer import Score

COUNTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 12)), min_size=2, max_size=9)


def scores(counts: list[tuple[int, ...]], system: int = 0) -> list[Score]:
    """(errors of system 0, errors of system 1, units) → the scores of one system."""
    return [Score(row[system], 0, 0, row[-1]) for row in counts]


def looped(counts: list[tuple[int, int, int]], resampling: Resampling) -> list[tuple[float, float]]:
    """Both systems' rates in every draw: the same random numbers, one utterance at a time."""
    ordered = sorted(counts, key=lambda row: (row[2], row[1], row[0]))
    index = np.random.default_rng(resampling.seed).integers(len(counts), size=(resampling.draws, len(counts)))
    rates = []
    for drawn in index.tolist():
        units = sum(ordered[i][2] for i in drawn)
        if units:
            rates.append(tuple(100.0 * sum(ordered[i][s] for i in drawn) / units for s in (0, 1)))
    return rates


@settings(deadline=None, max_examples=40)
@given(COUNTS, st.integers(0, 3))
def test_vectorised_draws_are_those_of_a_plain_loop(counts, seed):
    resampling = Resampling(200, seed)
    found = compare(scores(counts), scores(counts, 1), resampling)
    if not any(row[2] for row in counts):
        assert found is None
        return
    rates = looped(counts, resampling)
    deltas = [b - a for a, b in rates]
    better, worse = sum(d < 0 for d in deltas), sum(d > 0 for d in deltas)
    expected = Comparison(
        difference=100.0 * sum(row[1] - row[0] for row in counts) / sum(row[2] for row in counts),
        interval=tuple(np.percentile(deltas, [2.5, 97.5]).tolist()),
        improved=better / len(deltas),
        p_value=min(1.0, 2 * (len(deltas) - max(better, worse) + 1) / (len(deltas) + 1)),
    )
    assert found == expected


@settings(deadline=None, max_examples=40)
@given(COUNTS, st.randoms())
def test_figures_depend_on_the_seed_and_not_on_the_order(counts, rng: random.Random):
    first, resampling = compare(scores(counts), scores(counts, 1), Resampling(200)), Resampling(200)
    interval = rate_interval(scores(counts), resampling)
    rng.shuffle(counts)
    assert compare(scores(counts), scores(counts, 1), resampling) == first
    assert rate_interval(scores(counts), resampling) == interval


def test_draws_in_blocks_keep_their_number(monkeypatch):
    counts = [(i % 4, 0, 10) for i in range(50)]
    whole = bootstrap._resampled_rates([scores(counts)], Resampling(1000))
    monkeypatch.setattr(bootstrap, "_BLOCK", 50 * 300)
    blocks = bootstrap._resampled_rates([scores(counts)], Resampling(1000))
    assert whole.shape == blocks.shape == (1, 1000)
    assert abs(whole.mean() - blocks.mean()) < 1.0


def test_the_interval_is_that_of_all_possible_draws():
    counts = [(0, 0, 7), (1, 0, 5), (4, 0, 6), (2, 0, 9), (0, 0, 4)]
    every = [
        100.0 * sum(row[0] for row in drawn) / sum(row[2] for row in drawn)
        for drawn in itertools.product(counts, repeat=5)
    ]
    low, high = rate_interval(scores(counts), Resampling(20_000))
    assert low == pytest.approx(np.percentile(every, 2.5), abs=0.6)
    assert high == pytest.approx(np.percentile(every, 97.5), abs=0.6)
    improved = compare(scores(counts, 1), scores(counts), Resampling(20_000)).improved
    assert improved == 0.0
    a, b = [(1, 0, 5), (0, 2, 6), (3, 1, 9), (2, 2, 4)], 4
    truth = sum(sum(r[1] - r[0] for r in drawn) < 0 for drawn in itertools.product(a, repeat=b)) / b**b
    assert compare(scores(a), scores(a, 1), Resampling(20_000)).improved == pytest.approx(truth, abs=0.02)


def test_many_utterances_give_the_normal_interval():
    rng = random.Random(3)
    counts = [(sum(rng.random() < 0.1 for _ in range(20)), 0, 20) for _ in range(2000)]
    rates = [100.0 * row[0] / 20 for row in counts]
    spread = 1.96 * statistics.stdev(rates) / len(rates) ** 0.5
    low, high = rate_interval(scores(counts), Resampling())
    assert low == pytest.approx(statistics.fmean(rates) - spread, abs=0.1 * spread)
    assert high == pytest.approx(statistics.fmean(rates) + spread, abs=0.1 * spread)


def test_a_system_is_as_good_as_itself():
    rows = scores([(1, 1, 5), (0, 0, 6), (3, 3, 9)])
    assert compare(rows, rows, Resampling(100)) == Comparison(0.0, (0.0, 0.0), 0.0, 1.0)


def test_a_better_system_in_every_utterance_has_the_smallest_p_value_and_never_zero():
    counts = [(2, 1, 10)] * 20
    found = compare(scores(counts), scores(counts, 1), Resampling(999))
    assert (found.difference, found.interval, found.improved) == (-10.0, (-10.0, -10.0), 1.0)
    assert found.p_value == 2 / 1000


@pytest.mark.parametrize("counts", [[(1, 0, 5)], [(1, 0, 0), (3, 0, 0)]])
def test_one_utterance_or_no_reference_unit_has_no_interval(counts):
    assert rate_interval(scores(counts), Resampling()) is None
    assert compare(scores(counts), scores(counts), Resampling()) is None


def test_draws_of_empty_references_alone_are_left_out():
    low, high = rate_interval(scores([(2, 0, 0), (1, 0, 10)]), Resampling(1000))
    assert (low, high) == (10.0, 30.0)


@pytest.mark.parametrize(("draws", "seed", "said"), [(99, 0, "--bootstrap: .*99"), (100, -1, "--seed: .*-1")])
def test_useless_resampling_is_refused(draws, seed, said):
    with pytest.raises(OptionsError, match=said):
        Resampling(draws, seed)
