"""From scores to regions and windows, with a detector whose scores are written into the audio."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.audio.speech_windows import SpeechPlanner
from oasr.audio.vad import DETECTORS, RegionTracker
from oasr.audio.vad_energy import EnergyScorer
from oasr.audio.windows import Planning

RATE, HOP = 1000, 20


class WrittenScores:
    """A SpeechScorer: the score of a frame is its first sample; `delay` frames are decided late."""

    hop = HOP

    def __init__(self, delay: int = 0) -> None:
        self._delay, self._rest = delay, np.zeros(0, np.float32)

    def add(self, samples):
        self._rest = np.concatenate([self._rest, samples])
        ready = max(0, len(self._rest) // HOP - self._delay)
        scores, self._rest = self._rest[: ready * HOP : HOP], self._rest[ready * HOP :]
        return scores

    def finish(self):
        scores, self._rest = self._rest[::HOP], self._rest[:0]
        return scores


def talk(length_s: float, *regions: tuple[float, float]) -> np.ndarray:
    """A recording with speech in these stretches, in seconds."""
    samples = np.zeros(round(length_s * RATE), np.float32)
    for begin, end in regions:
        samples[round(begin * RATE) : round(end * RATE)] = 1.0
    return samples


def plan(samples, limit_s=30.0, sizes=(10**9,), delay=0):
    """The planner and its windows."""
    planner = SpeechPlanner(WrittenScores(delay), RATE, round(limit_s * RATE))
    found, at, turn = [], 0, 0
    while at < len(samples):
        size = sizes[turn % len(sizes)]
        found += planner.add(samples[at : at + size])
        at, turn = at + size, turn + 1
    return planner, found + planner.finish()


def seconds(windows):
    return [(w.start / RATE, (w.start + len(w.samples)) / RATE) for w in windows]


def regions_by_rule(scores):
    """The rule of RegionTracker, over all frames at once: 0.1 s of speech at least, 0.3 s of silence."""
    found, start, last = [], None, 0
    for frame, score in enumerate([*scores, *[0.0] * 15]):
        if start is None and score >= 0.3:
            start = last = frame
        elif start is not None and score >= 0.15:
            last = frame
        elif start is not None and frame - last >= 15:
            found += [(start * HOP, (last + 1) * HOP)] if last + 1 - start >= 5 else []
            start = None
    return found


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.14, 0.15, 0.29, 0.3, 1.0]), st.integers(1, 20)), max_size=30)
)
def test_regions_follow_the_rule_whatever_the_pieces(runs):
    scores = np.array(list(itertools.chain.from_iterable([s] * n for s, n in runs)))
    tracker, found = RegionTracker(HOP, RATE), []
    for piece in np.array_split(scores, 7):
        found += tracker.add(piece)
    found += tracker.finish(len(scores) * HOP)
    assert [(r.start, r.end) for r in found] == regions_by_rule(scores)


def test_a_window_keeps_a_little_of_the_pause_on_either_side():
    planner, windows = plan(talk(20, (5, 7), (7.5, 9), (15, 16)))
    assert [(r.start / RATE, r.end / RATE) for r in planner.speech] == [(5, 7), (7.5, 9), (15, 16)]
    assert seconds(windows) == [(4.6, 9.4), (14.6, 16.4)], "pauses of 4 s part windows, others do not"
    _, windows = plan(talk(10, (0.1, 2), (9, 9.9)))
    assert seconds(windows) == [(0.0, 2.4), (8.6, 10.0)]


def test_a_window_ends_at_the_longest_pause_of_its_last_third():
    _, windows = plan(talk(60, (0, 10), (13, 22), (22.6, 25), (26, 29), (29.4, 35), (35.5, 45)))
    assert seconds(windows)[0] == (0.0, 25.4)
    assert seconds(windows)[1][0] == 25.6


def test_where_the_last_third_has_no_pause_the_longest_one_before_it_is_taken():
    _, windows = plan(talk(60, (0, 5), (6, 12), (12.5, 41)))
    assert seconds(windows) == [(0.0, 5.4), (5.6, 12.25), (12.25, 41.4)]


def test_a_region_longer_than_the_limit_is_cut_inside_with_an_overlap():
    planner, windows = plan(talk(90, (10, 80)))
    assert len(planner.speech) == 1
    assert seconds(windows)[0][0] == 9.6 and seconds(windows)[-1][1] == 80.4
    for before, after in itertools.pairwise(windows):
        end = before.start + len(before.samples)
        assert after.start < after.cut <= end <= before.start + 30 * RATE


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.35, 6), st.floats(0.2, 25)), min_size=1, max_size=12),
    st.sampled_from([4.0, 10.0, 30.0]),
    st.lists(st.integers(500, 20000), min_size=1, max_size=4),
    st.sampled_from([0, 3, 800]),
)
def test_all_speech_is_in_windows_within_the_limit_and_pieces_change_nothing(turns, limit_s, sizes, delay):
    at, regions = 0.0, []
    for pause, length in turns:
        regions.append((at + pause, at + pause + length))
        at += pause + length
    samples = talk(at + 1, *regions)
    planner, windows = plan(samples, limit_s)
    again, others = plan(samples, limit_s, sizes, delay)
    assert [(w.start, len(w.samples), w.cut) for w in windows] == [
        (w.start, len(w.samples), w.cut) for w in others
    ]
    assert planner.speech == again.speech
    covered, end = np.zeros(len(samples), bool), 0
    for window in windows:
        begin = window.start
        assert begin >= end or (window.cut is not None and begin < window.cut <= end)
        end = begin + len(window.samples)
        assert 0 < end - begin <= limit_s * RATE
        np.testing.assert_array_equal(window.samples, samples[begin:end])
        covered[begin:end] = True
    for region in planner.speech:
        assert covered[region.start : region.end].all()


def test_nobody_speaks_in_silence():
    planner, windows = plan(np.zeros(50000, np.float32))
    assert planner.speech == [] and windows == []


def test_of_a_long_recording_little_is_held():
    planner = SpeechPlanner(WrittenScores(), RATE, 30 * RATE)
    for _ in range(300):
        planner.add(talk(8, (1, 3), (3.5, 7.5)))
        assert planner._tail.end - planner._tail.begin < 70 * RATE


# The detectors -------------------------------------------------------------------------------


def syllables(seconds: float, level: float, rate: int = 16000) -> np.ndarray:
    """Noise that swells and fades four times a second, as speech does."""
    t = np.arange(round(seconds * rate)) / rate
    swell = np.clip(np.sin(2 * np.pi * 4 * t), 0.02, 1)
    return (level * swell * np.random.default_rng(3).normal(size=len(t))).astype(np.float32)


def heard(scorer, samples, size=10**9):
    parts = [scorer.add(samples[i : i + size]) for i in range(0, len(samples), size)]
    return np.concatenate([*parts, scorer.finish()])


def regions_of(name, samples, rate=16000):
    planner = Planning(name, 30.0).planner(rate)
    planner.add(samples)
    planner.finish()
    return [(r.start / rate, r.end / rate) for r in planner.speech]


@pytest.mark.parametrize("noise_db", [-90, -60, -40])
def test_energy_finds_what_stands_out_of_any_steady_noise(noise_db):
    rng = np.random.default_rng(5)
    samples = (10 ** (noise_db / 20) * rng.normal(size=60 * 16000)).astype(np.float32)
    for begin in (5, 20, 40):
        samples[begin * 16000 : (begin + 6) * 16000] += syllables(6, 0.1)
    found = regions_of("energy", samples)
    assert [(round(a), round(b)) for a, b in found] == [(5, 11), (20, 26), (40, 46)]


def test_energy_follows_a_noise_that_sets_in():
    rng = np.random.default_rng(6)
    samples = rng.normal(0, 0.0003, 120 * 16000).astype(np.float32)
    samples[60 * 16000 :] += rng.normal(0, 0.02, 60 * 16000).astype(np.float32)
    for begin in (20, 100):
        samples[begin * 16000 : (begin + 5) * 16000] += syllables(5, 0.3)
    found = regions_of("energy", samples)
    assert any(abs(a - 20) < 0.3 and abs(b - 25) < 0.3 for a, b in found)
    assert any(abs(a - 100) < 0.3 and abs(b - 105) < 0.3 for a, b in found)
    assert sum(b - a for a, b in found) < 30, "of the new noise only its beginning is taken for speech"


@pytest.mark.parametrize("level", [1e-6, 0.01, 0.5])
def test_energy_hears_nobody_in_steady_noise_however_loud(level):
    samples = np.random.default_rng(8).normal(0, level, 30 * 16000).astype(np.float32)
    assert regions_of("energy", samples) == []
    assert regions_of("energy", np.zeros(16000, np.float32)) == []


@pytest.mark.parametrize("rate", [8000, 16000, 22050])
@pytest.mark.parametrize("size", [1, 160, 4999, 70000])
def test_energy_scores_do_not_depend_on_the_pieces(rate, size):
    seconds = 2 if size == 1 else 45
    samples = np.concatenate([syllables(seconds / 2, 0.2, rate), np.zeros(rate + 7, np.float32)])
    whole = heard(EnergyScorer(rate), samples)
    assert len(whole) == -(-len(samples) // EnergyScorer(rate).hop)
    np.testing.assert_array_equal(heard(EnergyScorer(rate), samples, size), whole)


def test_an_installed_detector_is_one_like_the_others(monkeypatch):
    monkeypatch.setattr(DETECTORS, "_loaded", {**DETECTORS._loaded, "written": lambda rate: WrittenScores()})
    planner = Planning("written", 30.0).planner(RATE)
    assert seconds(planner.add(talk(6, (2, 4))) + planner.finish()) == [(1.6, 4.4)]
