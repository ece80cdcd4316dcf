import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oasr.bench.percentiles import Histogram, Spread, latency_percentiles, percentile, round_step

values = st.lists(st.floats(0, 1e4, allow_nan=False), min_size=1, max_size=200)


@given(values, st.floats(0, 100))
def test_percentiles_are_numpys(data, q):
    assert percentile(data, q) == pytest.approx(np.percentile(data, q, method="linear"), rel=1e-9, abs=1e-12)


def test_percentiles_of_a_known_list():
    data = list(range(100, 0, -1))
    assert latency_percentiles(data) == pytest.approx(
        {"p50": 50.5, "p90": 90.1, "p95": 95.05, "p99": 99.01, "max": 100}
    )
    assert latency_percentiles([3.0]) == {"p50": 3, "p90": 3, "p95": 3, "p99": 3, "max": 3}
    assert latency_percentiles([]) is None


@pytest.mark.parametrize(("data", "q"), [([], 50), ([1.0], -1), ([1.0], 101), ([1.0], float("nan"))])
def test_what_has_no_percentile_is_refused(data, q):
    with pytest.raises(ValueError, match="expected"):
        percentile(data, q)


@given(values)
def test_spread_is_least_median_greatest(data):
    spread = Spread.of(data)
    assert (spread.min, spread.max) == (min(data), max(data))
    assert spread.median == pytest.approx(np.median(data), rel=1e-9, abs=1e-12)


def test_a_missing_measurement_leaves_no_spread():
    assert Spread.of([]) is None
    assert Spread.of([1.0, None]) is None


# Of two decimals, as latencies are shown: such values lie on the edges of bins.
@given(values | st.lists(st.integers(0, 10**5).map(lambda cents: cents / 100), min_size=1, max_size=50))
@example([1.0, 0.7])
@example([0.3, 0.6, 0.9])
def test_every_value_stands_in_its_bin(data):
    found = Histogram.of(data)
    counts, _ = np.histogram(data, np.append(found.edges[:-1], np.inf))
    assert found.counts == tuple(counts)
    assert sum(found.counts) == len(data)
    assert 1 <= len(found.counts) <= 53
    assert found.bars[0][0] <= min(data) and max(data) < found.bars[-1][1]


def test_a_value_on_an_edge_belongs_to_the_bin_above():
    assert Histogram.of([1.0, 0.7]).bars[0] == (0.7, 0.72, 1)


def test_a_few_values_still_spread_over_some_bins():
    assert len(Histogram.of([1.0, 2.0, 3.0, 4.0, 9.0]).counts) >= 8


@given(st.floats(1e-6, 1e6), st.booleans())
def test_round_steps_are_one_two_or_five(value, up):
    step = round_step(value, up)
    assert float(f"{step:.0e}"[0]) in (1, 2, 5)
    assert step == pytest.approx(value, rel=1e-6) or (step > value) == up
    assert 0.4 <= step / value <= 2.5 + 1e-6
