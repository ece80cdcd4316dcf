"""Windows of recordings that come in pieces: the same as of the whole, whatever the pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.audio.segment import next_cut, plan_windows
from oasr.audio.windows import Planning
from oasr.errors import OptionsError, RequestError

RATE = 1000


def noise(seconds: float, pauses=(), rate: int = RATE, seed: int = 7) -> np.ndarray:
    """Noise at speech level, near to silent in the stretches (begin, end) in seconds."""
    samples = np.random.default_rng(seed).normal(0, 0.1, round(seconds * rate)).astype(np.float32)
    for begin, end in pauses:
        samples[round(begin * rate) : round(end * rate)] *= 0.001
    return samples


def windows_of(planner, samples, sizes=(10**9,)):
    """All windows, the samples being handed over in pieces of these sizes, over and over."""
    found, at, turn = [], 0, 0
    while at < len(samples):
        size = max(1, sizes[turn % len(sizes)])
        found += planner.add(samples[at : at + size])
        at, turn = at + size, turn + 1
    return found + planner.finish()


def spans(windows):
    return [(window.start, window.start + len(window.samples), window.cut) for window in windows]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 30000),
    st.sampled_from([200, 1500, 4000, 10000]),
    st.lists(st.integers(100, 9000), min_size=1, max_size=5),
    st.lists(st.tuples(st.floats(0, 30), st.floats(0.05, 2)), max_size=12),
)
def test_pieces_change_nothing_and_no_sample_is_left_out(n, limit, sizes, pauses):
    samples = noise(n / RATE, [(begin, begin + length) for begin, length in pauses])
    planning = Planning("pauses", limit / RATE)
    whole = windows_of(planning.planner(RATE), samples)
    assert spans(windows_of(planning.planner(RATE), samples, sizes)) == spans(whole)
    at = 0
    for window in whole:
        begin, end = window.start, window.start + len(window.samples)
        np.testing.assert_array_equal(window.samples, samples[begin:end])
        assert 0 < end - begin <= limit
        # What two windows share lies around the cut, and is small.
        assert (begin == at) if window.cut is None else (begin < window.cut <= at and at - begin <= 3 * RATE)
        at = end
    assert at == n


def test_cuts_in_pauses_are_those_of_plan_windows_and_share_nothing():
    samples = noise(100, [(t, t + 0.6) for t in range(3, 100, 4)])
    found = windows_of(Planning("pauses", 10.0).planner(RATE), samples, (777,))
    assert [(begin, end) for begin, end, _ in spans(found)] == plan_windows(samples, RATE, 10.0)
    assert {window.cut for window in found} == {None} and len(found) > 10


def test_without_a_pause_windows_share_three_seconds_around_the_cut():
    samples = noise(45)
    found = windows_of(Planning("pauses", 30.0).planner(RATE), samples)
    (_, end, none), (begin, last, cut) = spans(found)
    assert none is None and last == len(samples)
    assert (end - cut, cut - begin) == (1500, 1500)
    assert next_cut(samples, 0, RATE, 30000) == (cut, False)


@pytest.mark.parametrize(("depth_db", "in_pause"), [(-6, False), (-9, False), (-11, True), (-40, True)])
def test_a_pause_is_ten_decibels_quieter_than_its_window(depth_db, in_pause):
    samples = noise(40)
    samples[25000:26000] *= 10 ** (depth_db / 20)
    cut, found = next_cut(samples, 0, RATE, 30000)
    # The quiet second takes 2 % of the window's mean away.
    assert found is in_pause and 25000 < cut < 26000


def test_a_window_too_short_for_a_word_shares_nothing():
    found = windows_of(Planning("pauses", 1.5).planner(RATE), noise(5))
    assert len(found) > 3 and {window.cut for window in found} == {None}


def test_of_a_long_recording_only_the_end_is_held():
    planner = Planning("pauses", 30.0).planner(RATE)
    for _ in range(400):
        planner.add(noise(8, [(2, 2.5), (5, 5.5)]))
        assert planner._tail.end - planner._tail.begin < 70 * RATE


def test_none_takes_a_recording_whole_or_refuses_it():
    planning = Planning("none", 30.0)
    (window,) = windows_of(planning.planner(RATE), noise(30), (9000,))
    assert spans([window]) == [(0, 30000, None)]
    planner = planning.planner(RATE)
    planner.add(noise(30))
    with pytest.raises(
        RequestError, match=r"30\.0 s or longer, a window at most 30 s and --vad none cuts nothing"
    ):
        planner.add(noise(0.001))


def test_a_model_without_a_limit_gets_recordings_whole():
    for name in ("pauses", "none"):
        assert len(windows_of(Planning(name).planner(RATE), noise(500), (10000,))) == 1


def test_an_unknown_detector_and_an_impossible_limit_are_named():
    with pytest.raises(OptionsError, match=r"vad: expected pauses, energy, silero, none, got 'webrtc'"):
        Planning("webrtc").check()
    with pytest.raises(OptionsError, match="max_window_s: expected at least one sample"):
        Planning("pauses", 1e-9).planner(RATE)


@pytest.mark.parametrize(("start", "n"), [(-1, 50), (0, 10), (41, 50), (50, 50)])
def test_a_start_without_more_than_a_window_behind_it_is_refused(start, n):
    with pytest.raises(ValueError, match=r"start: expected more than the limit of 10 behind it"):
        next_cut(np.zeros(n, np.float32), start, RATE, 10)
