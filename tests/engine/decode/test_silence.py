"""Where a recording is silent, and token spans that end there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oasr.decode.silence import PAUSE_FRAMES, loud_frames, rest_marks, stop_at_pauses

FRAME = 320


def sound(frames: int, level_db: float, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=frames * FRAME)
    return (noise * 10 ** (level_db / 20)).astype(np.float32)


def recording(*parts: tuple[int, float]) -> np.ndarray:
    """Parts of (frames, dB full scale)."""
    return np.concatenate([sound(frames, level, i) for i, (frames, level) in enumerate(parts)])


def runs(loud: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud.astype(int), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


@pytest.mark.parametrize("background", [-200.0, -80.0, -60.0, -45.0])
def test_speech_stands_out_of_any_background(background: float) -> None:
    samples = recording((50, background), (40, -20), (60, background), (30, -25), (20, background))
    found = runs(loud_frames(samples, FRAME, 200))
    assert len(found) == 2
    for (start, end), truth in zip(found, [(50, 90), (150, 180)], strict=True):
        assert abs(start - truth[0]) <= 1 and abs(end - truth[1]) <= 1


def test_steady_sound_has_no_pauses() -> None:
    for samples in (sound(100, -20), sound(100, -70), np.zeros(100 * FRAME, np.float32)):
        assert loud_frames(samples, FRAME, 100).all()


def test_soft_parts_of_fluent_speech_are_no_pauses() -> None:
    samples = recording(*[(8, -20.0), (4, -45.0)] * 20)
    spans = np.array([[i, i + 12] for i in range(0, 240, 12)])
    assert stop_at_pauses(spans, loud_frames(samples, FRAME, 240)).tolist() == spans.tolist()


def test_a_recording_shorter_or_longer_than_its_frames() -> None:
    assert loud_frames(np.full(10, 0.5, np.float32), FRAME, 1).tolist() == [True]
    assert loud_frames(np.zeros(0, np.float32), FRAME, 3).all()
    samples = recording((40, -20), (40, -90))
    assert runs(loud_frames(samples, FRAME, 60)) == runs(loud_frames(samples[: 60 * FRAME], FRAME, 60))
    assert len(loud_frames(samples, FRAME, 100)) == 100


LOUD = np.array([0] * 50 + [1] * 40 + [0] * 60 + [1] * 30 + [0] * 20, dtype=bool)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ((0, 60), (50, 60)),  # a pause before the word
        ((80, 140), (80, 90)),  # and after it
        ((0, 200), (50, 180)),
        ((60, 70), (60, 70)),
        ((40, 60), (40, 60)),  # too short to be a pause
        ((80, 90 + PAUSE_FRAMES), (80, 90)),
        ((80, 90 + PAUSE_FRAMES - 1), (80, 90 + PAUSE_FRAMES - 1)),
        ((92, 140), (92, 93)),  # a pause and nothing else: beside the sound before it
        ((5, 45), (44, 45)),  # before the first sound: beside that
        ((182, 200), (182, 183)),
        ((95, 100), (95, 100)),
    ],
)
def test_spans_stop_at_pauses(span: tuple[int, int], expected: tuple[int, int]) -> None:
    assert stop_at_pauses(np.array([span]), LOUD).tolist() == [list(expected)]


@given(st.lists(st.booleans(), min_size=1, max_size=80), st.data())
def test_spans_shrink_and_stay_in_order(loud: list[bool], data) -> None:
    count = st.lists(st.integers(0, len(loud)), min_size=2, max_size=8, unique=True)
    edges = sorted(data.draw(count))
    spans = np.array(list(pairwise(edges)))
    out = stop_at_pauses(spans, np.array(loud))
    assert (out[:, 0] >= spans[:, 0]).all() and (out[:, 1] <= spans[:, 1]).all()
    assert (out[:, 0] < out[:, 1]).all()
    kept = [any(loud[a:b]) for a, b in out.tolist()]
    assert all(k or b - a == 1 or b - a < PAUSE_FRAMES for k, (a, b) in zip(kept, out.tolist(), strict=True))


def rest(*tokens: tuple[str, int, int]) -> list[tuple[str, int, int]]:
    pieces = [piece for piece, _, _ in tokens]
    out = rest_marks(np.array([span for _, *span in tokens]), pieces)
    return [(piece, a, b) for piece, (a, b) in zip(pieces, out.tolist(), strict=True)]


def test_punctuation_takes_no_time_of_its_own() -> None:
    got = rest((" so", 0, 9), (",", 9, 80), (' "', 80, 99), ("it", 99, 120), ('."', 120, 200))
    assert got == [(" so", 0, 9), (",", 8, 9), (' "', 99, 100), ("it", 99, 120), ('."', 119, 120)]


def test_several_marks_in_a_row_share_the_frame() -> None:
    assert rest(("a", 0, 5), ("!", 5, 9), ("?", 9, 12))[1:] == [("!", 4, 5), ("?", 4, 5)]
    assert rest((" (", 0, 5), ("¿", 5, 9), ("qué", 9, 12))[:2] == [(" (", 9, 10), ("¿", 9, 10)]
    assert rest(("你", 0, 5), ("「", 5, 9), ("好", 9, 12))[1] == ("「", 9, 10)


def test_what_is_spoken_keeps_its_time() -> None:
    for piece in ("%", " &", "5.", "", " ", "'s", "\u0940", "♪", "�"):
        assert rest(("a", 0, 5), (piece, 5, 9), ("b", 9, 12))[1] == (piece, 5, 9)


def test_a_mark_alone_between_spaces_goes_with_the_word_before() -> None:
    assert rest((" a", 0, 5), (" -", 5, 9), (" b", 9, 12))[1] == (" -", 4, 5)
    assert rest((" -", 0, 9), (" b", 9, 12))[0] == (" -", 0, 9)  # nothing stands before it
    assert rest((".", 3, 9)) == [(".", 3, 9)]
