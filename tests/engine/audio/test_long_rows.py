"""The loader with recordings so long that they come out in pieces: order, bounds, fairness, failures."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oasr.audio import arrays, pieces
from oasr.audio.loader import AudioLoader, LoaderSettings
from oasr.audio.windows import Planning
from oasr.types import RowFailure, Utterance

pytestmark = pytest.mark.usefixtures("any_rate")

RATE = 100
WINDOW_S = 1.5  # too short for windows to share anything


@pytest.fixture(autouse=True, scope="module")
def early():
    """Long is what lasts more than 3 s, and blocks hold one second."""
    patch = pytest.MonkeyPatch()
    patch.setattr(pieces, "LONG_S", 3.0)
    patch.setattr(arrays, "BLOCK_FRAMES", RATE)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def no_thread_is_left():
    _others.clear()
    _others.update(threading.enumerate())
    yield
    wait_until(lambda: not readers())


_others = set()


def readers():
    """The reader threads, without those that other tests may have left."""
    mine = set(threading.enumerate()) - _others
    return [thread for thread in mine if thread.name == "oasr-reader"]


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.001)


def row(index, seconds=1.0, channels=1, bad_at=None, **fields):
    """A recording whose samples count up, so that each is known by its value."""
    samples = np.arange(round(seconds * RATE) * channels, dtype=np.float32).reshape(-1, channels) / 1e6 + 0.01
    if bad_at is not None:
        samples[round(bad_at * RATE)] = np.nan
    return Utterance(f"u{index}", samples=samples, sample_rate=RATE, index=index, **fields)


def chosen(**fields):
    return LoaderSettings(RATE, planning=Planning("pauses", WINDOW_S), **fields)


def place(loaded):
    return loaded.utterance.index if loaded.utterance else loaded.failure.index


def last(loaded):
    return loaded.failure is not None or loaded.piece.ended is not None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["tiny", "short", "long", "longer", "split", "absent", "bad row", "breaks", "slow"]),
        max_size=14,
    ),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from([0.5, 4.0, 50.0]),
    st.sampled_from([None, 0, 2]),
)
def test_every_row_comes_whole_in_order_and_within_bounds(kinds, workers, ahead_rows, ahead_s, overtaking):
    def rows():
        for i, kind in enumerate(kinds):
            if kind == "slow":
                time.sleep(0.002)
            yield {
                "tiny": lambda i=i: row(i, 0.1),
                "short": lambda i=i: row(i, 2.9),
                "long": lambda i=i: row(i, 7.0),
                "longer": lambda i=i: row(i, 25.0),
                "split": lambda i=i: row(i, 6.0, channels=2, channel="split"),
                "absent": lambda i=i: Utterance(f"u{i}", "absent.wav", i),
                "bad row": lambda i=i: RowFailure(f"u{i}", i, "manifest", "bad"),
                "breaks": lambda i=i: row(i, 20.0, bad_at=15.0),
                "slow": lambda i=i: row(i, 1.0),
            }[kind]()

    limits = {"workers": workers, "ahead_rows": ahead_rows, "ahead_seconds": ahead_s}
    begun, open_rows, found = [], {}, {}
    with AudioLoader(rows(), chosen(overtaking=overtaking, **limits)) as loader:
        for loaded in loader:
            index = place(loaded)
            key = (index, loaded.utterance.part if loaded.utterance else 0)
            if key not in found:
                begun.append(key)
                assert (
                    overtaking is None or index - min([*(k[0] for k in open_rows), index]) <= overtaking + 1
                )
            assert key not in found or key in open_rows, "a piece behind the last one"
            found.setdefault(key, []).append(loaded)
            open_rows.pop(key, None)
            if not last(loaded):
                open_rows[key] = True
            queue = loader._queue
            with queue.state:
                waiting = sum(queue.limits.seconds_of(rows) for rows in queue.ready.values())
                waiting += sum(
                    queue.limits.seconds_of(rows) for pieces in queue._long.values() for rows in pieces
                )
                assert waiting == pytest.approx(queue.ready_s)
    assert not open_rows and begun == sorted(begun)
    assert sorted({index for index, _ in found}) == list(range(len(kinds)))
    for (index, part), parts in found.items():
        if kinds[index] in ("absent", "bad row", "breaks"):
            assert parts[-1].failure is not None
            continue
        windows = [window for loaded in parts for window in loaded.piece.windows]
        samples = np.concatenate([window.samples for window in windows])
        length = {"tiny": 0.1, "short": 2.9, "long": 7.0, "longer": 25.0, "split": 6.0, "slow": 1.0}
        whole = row(index, length[kinds[index]], 2 if kinds[index] == "split" else 1).samples
        np.testing.assert_array_equal(samples, whole[:, part])
        assert [window.start for window in windows] == [
            0, *itertools.accumulate(len(window.samples) for window in windows[:-1])
        ]  # fmt: skip


def test_an_hour_is_never_held():
    held = []
    with AudioLoader([row(0, 3600.0)], chosen(workers=1, ahead_seconds=10.0)) as loader:
        for _ in loader:
            time.sleep(0.0002)
            held.append(loader._queue.ready_s)
    assert len(held) > 300 and max(held) <= 12.0


def test_short_rows_do_not_wait_for_an_hour_nor_the_hour_for_them():
    rows = [row(0, 600.0), *(row(i) for i in range(1, 200))]
    order = []
    with AudioLoader(rows, chosen(workers=1)) as loader:
        for loaded in loader:
            time.sleep(0.001)  # as with a model, readers are never behind
            order.append((place(loaded), last(loaded)))
    end = order.index((0, True))
    before = {index for index, _ in order[:end]}
    assert len(before) > 150, "they took turns"
    pieces_before_the_100th = sum(index == 0 for index, _ in order[: order.index((100, True))])
    assert pieces_before_the_100th > 50


def test_rows_go_past_a_long_one_only_as_far_as_they_may():
    rows = [row(0, 60.0), *(row(i) for i in range(1, 30))]
    with AudioLoader(rows, chosen(overtaking=3)) as loader:
        order = [(place(loaded), last(loaded)) for loaded in loader]
    assert max(index for index, _ in order[: order.index((0, True))]) <= 4
    assert [index for index, end in order if end and index] == list(range(1, 30))


def test_several_long_rows_take_turns():
    rows = [row(i, 200.0) for i in range(3)]
    with AudioLoader(rows, chosen(workers=3)) as loader:
        order = [place(loaded) for loaded in loader]
    first_end = min(len(order) - 1 - order[::-1].index(i) for i in range(3))
    counts = [order[:first_end].count(i) for i in range(3)]
    assert min(counts) > 20


def test_a_dropped_row_is_read_no_further():
    rows = [row(0, 100000.0), row(1), row(2, 5.0)]
    seen = []
    with AudioLoader(rows, chosen(workers=1)) as loader:
        for loaded in loader:
            seen.append(place(loaded))
            if seen == [0]:
                loader.drop(loaded.number)
    assert seen.count(0) == 1 and 1 in seen and seen[-1] == 2


def test_a_long_recording_that_breaks_tells_it_for_each_of_its_rows():
    samples = row(0, 30.0, channels=2).samples
    samples[2500] = np.inf
    broken = Utterance("s", samples=samples, sample_rate=RATE, channel="split")
    with AudioLoader([broken, row(1)], chosen()) as loader:
        got = list(loader)
    failures = [loaded for loaded in got if loaded.failure]
    assert [loaded.utterance.id for loaded in failures] == ["s-ch0", "s-ch1"]
    assert [(loaded.failure.part, loaded.failure.parts) for loaded in failures] == [(0, 2), (1, 2)]
    assert {loaded.failure.stage for loaded in failures} == {"audio"}
    assert any(place(loaded) == 1 for loaded in got)


def test_leaving_the_loop_stops_the_readers_of_long_rows():
    for loaded in AudioLoader((row(i, 1000.0) for i in range(5)), chosen(workers=2)):
        assert place(loaded) == 0
        break
    assert not readers()


def test_what_the_readers_wait_for_is_not_reading():
    began = time.monotonic()
    with AudioLoader([row(0, 100.0)], chosen(workers=1, ahead_seconds=2.0)) as loader:
        for _ in loader:
            time.sleep(0.05)
    assert 0 <= loader.reading_s < (time.monotonic() - began) / 2
