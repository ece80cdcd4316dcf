"""How a list is cut into windows, and how far ahead of the results it is read."""

from __future__ import annotations

import math
import pickle
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oasr.errors import ManifestError
from oasr.launch.feeder import WINDOW_SECONDS, Feeder, Windows, cut
from oasr.types import RowFailure, Utterance


def _row(index: int, seconds: float | None = None, **more) -> Utterance:
    return Utterance(f"r{index}", "gone.wav", index, duration=seconds, **more)


@given(st.lists(st.floats(0.1, 2000), max_size=60), st.integers(1, 20))
def test_windows_are_the_list_in_order_and_bounded(lengths, most):
    rows = [_row(index, seconds) for index, seconds in enumerate(lengths)]
    windows = list(cut(rows, most))
    assert [row for window in windows for row in window] == rows
    for number, window in enumerate(windows):
        assert 1 <= len(window) <= most
        total = sum(row.duration for row in window)
        assert len(window) == 1 or total <= WINDOW_SECONDS
        # Each window ends for a reason: the next row would be too many, or too long.
        if number + 1 < len(windows):
            assert len(window) == most or total + windows[number + 1][0].duration > WINDOW_SECONDS


def test_lengths_come_from_the_row_its_keys_or_the_size_of_the_file(tmp_path: Path):
    long = tmp_path / "long.mp3"
    with long.open("wb") as file:
        file.truncate(20_000_000)
    rows = [
        _row(0, 700.0),
        _row(1, row={"duration": 700}),
        Utterance("r2", str(long), 2),
        RowFailure("r3", 3, "manifest", "no"),
        _row(4),
        _row(5, row={"duration": "unknown"}),
    ]
    assert [len(window) for window in cut(rows, 16)] == [1, 1, 1, 3]


@pytest.mark.parametrize("stated", [0, 0.0, True, -5, math.nan, math.inf, pytest.param(10**400, id="huge")])
def test_a_length_that_is_none_leaves_the_word_to_the_size_of_the_file(tmp_path: Path, stated):
    with (tmp_path / "x.wav").open("wb") as file:
        file.truncate(5_000_000)
    path = str(tmp_path / "x.wav")
    for told in ({"row": {"duration": stated}}, {"duration": stated}):
        rows = [Utterance(f"r{index}", path, index, **told) for index in range(4)]
        assert [len(window) for window in cut(rows, 16)] == [1, 1, 1, 1]


def test_small_lists_reach_every_engine_and_large_ones_come_in_fractions_of_a_batch():
    assert Windows.of(16, 2, 9).rows == 1
    for total in (1, 9, 150, 500):
        short = Windows.of(16, 2, total)
        assert short.rows * short.at_once <= max(2, total // 2)
    assert Windows.of(128, 2, 4000).rows == 32 == Windows.of(128, 2, None).rows
    for batch in (1, 16, 128, 1024):
        windows = Windows.of(batch, 2, None)
        assert 4 <= windows.at_once <= 64 and windows.rows * windows.at_once >= 8 * batch
        assert windows.ahead >= 2 * 2 * windows.at_once


def test_the_list_is_read_only_as_far_as_there_is_room():
    taken, handed, complete = [], [], threading.Event()

    def rows():
        for index in range(100):
            taken.append(index)
            yield _row(index)

    windows = Windows(rows=5, at_once=2, ahead=3)
    feeder = Feeder(rows(), windows, lambda number, rows: handed.append((number, rows)), complete.set)
    while len(handed) < 3:
        complete.wait(0.01)
    assert not complete.wait(0.1) and len(taken) <= 21
    for _ in range(20):
        feeder.returned()
    assert complete.wait(10) and feeder.windows == 20 and feeder.error is None
    assert [number for number, _ in handed] == list(range(20))
    assert [row.index for _, rows in handed for row in pickle.loads(rows)] == list(range(100))


def test_a_list_that_breaks_is_told_and_a_stop_ends_it():
    def broken():
        yield _row(0)
        raise ManifestError("the list is gone")

    complete = threading.Event()
    feeder = Feeder(broken(), Windows(1, 1, 9), lambda *_: None, complete.set)
    assert complete.wait(10) and isinstance(feeder.error, ManifestError) and feeder.windows <= 1

    complete, both = threading.Event(), threading.Event()
    hand_in = lambda number, _: both.set() if number == 1 else None  # noqa: E731
    feeder = Feeder((_row(i) for i in range(9)), Windows(1, 1, 2), hand_in, complete.set)
    assert both.wait(30) and not complete.wait(0.05)
    feeder.stop()
    assert complete.wait(10) and feeder.windows == 2


@pytest.mark.parametrize("rows", [[], [_row(0)]])
def test_the_shortest_lists(rows):
    complete, handed = threading.Event(), []
    Feeder(rows, Windows(4, 1, 4), lambda number, _: handed.append(number), complete.set)
    assert complete.wait(10) and handed == list(range(len(rows)))
