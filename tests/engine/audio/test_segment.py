import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.audio.segment import holds_no_speech, plan_windows
from oasr.errors import OptionsError


def oracle(samples, rate, limit):
    """The rule of include/oasr/segmentation.h, spelled out in exact integers."""
    step = max(1, rate // 100)
    steps16 = np.rint(np.clip(samples, -1, 1).astype(np.float32) * np.float32(32768)).astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(steps16**2)])

    def energy(begin):
        low, high = (min(max(i, 0), len(samples)) for i in (begin, begin + step))
        return int(sums[high] - sums[low])

    def level(point):
        return sum((20 - k) * (energy(point - (k + 1) * step) + energy(point + k * step)) for k in range(20))

    def cut(start):
        left = len(samples) - start
        if 3 * left <= 5 * limit:
            least = max(1, limit // 4)
            first, last = max(left - limit, least), min(limit, left - least)
        else:
            first, last = max(1, -(-2 * limit // 3)), limit
        points = list(range(start + first, start + last + 1, step))
        levels = [level(p) for p in points]
        quiet = max(2 * min(levels), 4 * 420 * step)
        runs, run = [], []
        for j, value in enumerate([*levels, quiet + 1]):
            if value <= quiet:
                run.append(j)
            elif run:
                runs.append(run)
                run = []
        longest = max(runs, key=len)
        return points[longest[(len(longest) - 1) // 2]]

    windows, start = [], 0
    while len(samples) - start > limit:
        end = cut(start)
        windows.append((start, end))
        start = end
    return [*windows, (start, len(samples))] if start < len(samples) else windows


def speech(seconds, pauses, rate=16000, noise=0.001):
    """Noise at speech level with quieter stretches (begin, end) in seconds."""
    rng = np.random.default_rng(7)
    samples = rng.normal(0, 0.1, round(seconds * rate)).astype(np.float32)
    for begin, end in pauses:
        part = slice(round(begin * rate), round(end * rate))
        samples[part] *= noise / 0.1
    return samples


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1600),
    st.integers(1, 600),
    st.sampled_from([50, 99, 100, 800, 1600]),
    st.integers(0, 2**32 - 1),
)
def test_windows_cover_everything_once_in_order_within_the_limit(n, limit, rate, seed):
    rng = np.random.default_rng(seed)
    samples = (rng.normal(0, 0.3, n) * (rng.random(n) < 0.7)).astype(np.float32)
    windows = plan_windows(samples, rate, limit / rate + 1e-9)
    assert [i for window in windows for i in range(*window)] == list(range(n))
    assert all(0 < end - begin <= limit for begin, end in windows)
    if n > limit >= 4:
        assert min(end - begin for begin, end in windows) >= limit // 4
    assert windows == oracle(samples, rate, limit)


@pytest.mark.parametrize("n", [0, 1, 2, 29, 30, 31, 32, 49, 50, 51, 59, 60, 61, 3000])
@pytest.mark.parametrize("value", [0.0, 1.0, 2.0])
def test_lengths_around_the_limit_on_constant_audio(n, value):
    samples = np.full(n, value, np.float32)
    windows = plan_windows(samples, 10, 3.0)
    assert windows == oracle(samples, 10, 30)
    assert len(windows) == (0 if n == 0 else 1) if n <= 30 else len(windows) >= 2


def test_the_cut_is_the_middle_of_the_pause():
    (_, cut), *_ = plan_windows(speech(50, [(24.0, 24.8)]), 16000, 30.0)
    assert cut / 16000 == pytest.approx(24.4, abs=0.02)


def test_a_long_pause_beats_a_short_one_and_the_earlier_of_two_equal_ones_wins():
    ((_, cut), *_) = plan_windows(speech(90, [(21.0, 21.3), (24.0, 25.0), (27.0, 27.3)]), 16000, 30.0)
    assert cut / 16000 == pytest.approx(24.5, abs=0.05)
    ((_, cut), *_) = plan_windows(speech(90, [(22.0, 22.6), (27.0, 27.6)], noise=0.0), 16000, 30.0)
    assert cut / 16000 == pytest.approx(22.3, abs=0.02)


def test_a_pause_before_the_last_third_is_not_used_while_much_is_left():
    ((_, cut), *_) = plan_windows(speech(90, [(10.0, 12.0), (28.0, 28.4)]), 16000, 30.0)
    assert cut / 16000 == pytest.approx(28.2, abs=0.02)


def test_no_scrap_is_left_at_the_end():
    windows = plan_windows(speech(31.0, []), 16000, 30.0)
    assert len(windows) == 2 and min(e - b for b, e in windows) >= 7.5 * 16000
    windows = plan_windows(speech(31.0, [(9.0, 9.5)]), 16000, 30.0)
    assert windows[0][1] / 16000 == pytest.approx(9.25, abs=0.02), "the whole range is free for two windows"


def test_digital_silence_is_cut_evenly_enough():
    windows = plan_windows(np.zeros(600 * 16000, np.float32), 16000, 30.0)
    assert len(windows) == 24
    assert all(b - a >= 15 * 16000 for a, b in windows)


def test_any_float_array_is_accepted_and_left_alone():
    samples = speech(40, [(20, 21)])
    expected = plan_windows(samples, 16000, 30.0)
    assert plan_windows(samples.astype(np.float64), 16000, 30.0) == expected
    assert plan_windows(np.repeat(samples, 2)[::2], 16000, 30.0) == expected
    samples.flags.writeable = False
    assert plan_windows(samples, 16000, 30.0) == expected
    assert plan_windows(np.full(40 * 16000, np.nan, np.float32), 16000, 30.0)[0][0] == 0
    assert plan_windows(samples, 16000, float("inf")) == [(0, len(samples))]


@pytest.mark.parametrize("window", [0.0, -1.0, float("nan"), 1e-9])
def test_a_window_without_a_sample_is_refused(window):
    with pytest.raises(OptionsError, match="max_window_s"):
        plan_windows(np.zeros(10, np.float32), 16000, window)


@pytest.mark.parametrize(
    ("samples", "silent"),
    [
        (np.zeros(16000, np.float32), True),
        (np.full(16000, 1e-5, np.float32), True),  # a third of a step of 16-bit audio
        (np.full(16000, 3.1e-5, np.float32), False),
        (np.r_[np.zeros(16000), -0.1].astype(np.float32), False),
        (np.ones(400, np.float32), True),  # 25 ms: one analysis window
        (np.ones(401, np.float32), False),
        (np.ones(0, np.float32), True),
    ],
)
def test_what_can_hold_no_speech(samples: np.ndarray, silent: bool) -> None:
    assert holds_no_speech(samples, 16000) is silent
