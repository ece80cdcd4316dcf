import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from helpers.audio_files import pcm16, sweep, wav_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.audio import loader as loader_module
from oasr.audio.loader import AudioLoader, LoaderSettings
from oasr.errors import ManifestError, OptionsError
from oasr.types import RowFailure, Utterance

pytestmark = pytest.mark.usefixtures("any_rate")

RATE = 100
SETTINGS = LoaderSettings(RATE)


def clip(index, seconds=1.0, channels=1, **fields):
    samples = np.full((round(seconds * RATE), channels), 0.1, np.float32)
    return Utterance(f"u{index}", samples=samples, sample_rate=RATE, index=index, **fields)


def bad(index):
    return Utterance(f"u{index}", samples=np.zeros(0, np.float32), sample_rate=RATE, index=index)


def readers():
    """The reader threads, without those that other tests may have left."""
    mine = set(threading.enumerate()) - _others
    return [thread for thread in mine if thread.name.startswith("oasr-reader")]


_others = set()


@pytest.fixture(autouse=True)
def no_thread_is_left():
    _others.clear()
    _others.update(threading.enumerate())
    yield
    assert not readers()


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.001)


def test_rows_come_in_order_with_failures_in_their_place():
    broken = RowFailure("b", 2, "manifest", "no audio key")
    rows = [clip(0), bad(1), broken, clip(3, channels=2, channel="split"), clip(4)]
    got = list(AudioLoader(iter(rows), SETTINGS))
    assert [row.utterance.id if row.utterance else None for row in got] == [
        "u0",
        "u1",
        None,
        "u3-ch0",
        "u3-ch1",
        "u4",
    ]
    assert [row.failure is None for row in got] == [True, False, False, True, True, True]
    assert got[1].failure.stage == "audio" and "no samples" in got[1].failure.message
    assert got[2].failure is broken and got[2].waveform is None
    assert got[0].waveform.sample_rate == RATE and len(got[0].waveform.samples) == RATE


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([0.1, 0.5, 1.0, 3.0, 20.0, None, "fail", "slow"]), max_size=25),
    st.integers(1, 4),
    st.integers(1, 6),
    st.sampled_from([0.5, 2.0, 100.0]),
)
def test_order_and_bounds_hold_for_any_list(kinds, workers, ahead_rows, ahead_seconds):
    taken, consumed = [], 0

    def rows():
        for index, kind in enumerate(kinds):
            taken.append(index)
            assert index - consumed < ahead_rows + 1, "taken too far ahead"
            if kind == "slow":
                time.sleep(0.003)
            if kind == "fail":
                yield RowFailure(f"u{index}", index, "manifest", "bad")
            else:
                yield bad(index) if kind is None else clip(index, 1.0 if kind == "slow" else kind)

    chosen = LoaderSettings(RATE, workers=workers, ahead_rows=ahead_rows, ahead_seconds=ahead_seconds)
    got = []
    with AudioLoader(rows(), chosen) as loader:
        for row in loader:
            got.append(row.failure.index if row.failure else row.utterance.index)
            consumed = len(got)
            queue = loader._queue
            with queue.state:
                seconds_of = queue.limits.seconds_of
                head = queue.ready.get(queue.next, [])
                waiting = sum(seconds_of(rows) for rows in queue.ready.values())
                assert waiting == pytest.approx(queue.ready_s)
                assert waiting - seconds_of(head) <= ahead_seconds + 1e-9
    assert got == list(range(len(kinds)))


def test_nothing_is_read_before_it_is_asked_for():
    taken = []
    rows = (taken.append(i) or clip(i) for i in range(100))
    loader = AudioLoader(rows, replace(SETTINGS, ahead_rows=5))
    assert taken == [] and not readers()
    iterator = iter(loader)
    next(iterator)
    wait_until(lambda: len(taken) == 6)
    time.sleep(0.02)
    assert len(taken) == 6, "five rows ahead of the one that was handed over"
    iterator.close()


def test_seconds_bound_the_queue_and_a_longer_file_passes():
    taken = []
    lengths = [1.0] * 10 + [50.0] + [1.0] * 10
    rows = (taken.append(i) or clip(i, s) for i, s in enumerate(lengths))
    with AudioLoader(rows, replace(SETTINGS, ahead_seconds=3.0)) as loader:
        iterator = iter(loader)
        next(iterator)
        wait_until(lambda: loader._queue.ready_s >= 3.0)  # more when row 1 is put last
        time.sleep(0.02)
        assert len(taken) <= 1 + 3 + 1, "three seconds wait, one reader may hold the next row"
        assert [len(row.waveform.samples) for row in iterator] == [round(s * RATE) for s in lengths[1:]]


def test_a_million_rows_are_not_held(monkeypatch):
    rows = (clip(i, 0.01) for i in range(10**6))
    with AudioLoader(rows, SETTINGS) as loader:
        for count, _ in enumerate(loader):
            if count == 500:
                break
        assert len(loader._queue.ready) <= SETTINGS.ahead_rows


def test_an_error_of_the_list_is_raised_in_its_place():
    def rows():
        yield clip(0)
        yield clip(1)
        raise ManifestError("list.jsonl:3: duplicate id")

    got = []
    with pytest.raises(ManifestError, match="duplicate"):
        got.extend(row.utterance.id for row in _each(AudioLoader(rows(), SETTINGS), got))
    assert got == ["u0", "u1"]


def _each(loader, got):
    for row in loader:
        got.append(row.utterance.id)
    return []


def test_an_unexpected_error_becomes_the_row_s_failure(monkeypatch):
    def broken(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(loader_module, "read_waveforms", broken)
    (row,) = AudioLoader([clip(0)], SETTINGS)
    assert row.failure.stage == "audio" and "MemoryError: no room" in row.failure.message


def test_leaving_the_loop_stops_the_readers():
    for row in AudioLoader((clip(i) for i in range(1000)), SETTINGS):
        assert row.utterance.id == "u0"
        break
    assert not readers()


def test_an_exception_in_the_loop_stops_the_readers():
    loader = AudioLoader((clip(i) for i in range(1000)), SETTINGS)
    with pytest.raises(KeyboardInterrupt), loader:
        for _ in loader:
            raise KeyboardInterrupt
    assert not readers()


def test_close_is_safe_at_any_time_and_a_loader_is_used_once():
    loader = AudioLoader([clip(0)], SETTINGS)
    loader.close()
    loader.close()
    with pytest.raises(RuntimeError, match="once"):
        iter(loader)
    other = AudioLoader([clip(0)], SETTINGS)
    assert len(list(other)) == 1
    with pytest.raises(RuntimeError, match="once"):
        list(other)


def test_close_ends_a_command_that_would_run_for_ever(tmp_path):
    mark = tmp_path / "started"
    endless = Utterance("e", command=f"touch '{mark}'; sleep 600", index=1)
    loader = AudioLoader([clip(0), endless], replace(SETTINGS, allow_pipes=True))
    iterator = iter(loader)
    next(iterator)
    wait_until(mark.exists)
    loader.close()
    assert not readers() and list(iterator) == []


def test_close_gives_up_a_recording_in_the_middle(tmp_path, monkeypatch):
    (tmp_path / "x.wav").write_bytes(wav_bytes(pcm16(sweep(60.0)), rate=16000))
    blocks = threading.Event()
    original = loader_module.read_waveforms

    def slow(*args, cancel, **fields):
        blocks.set()
        cancel.wait(20)
        return original(*args, cancel=cancel, **fields)

    monkeypatch.setattr(loader_module, "read_waveforms", slow)
    loader = AudioLoader([Utterance("u", str(tmp_path / "x.wav"))], SETTINGS)
    iterator = iter(loader)
    thread = threading.Thread(target=lambda: list(iterator))
    thread.start()
    assert blocks.wait(20)
    loader.close()
    thread.join(20)
    assert not thread.is_alive() and not readers()


def test_settings_reach_the_reader(tmp_path):
    samples = sweep(0.5, channels=2)
    (tmp_path / "x.wav").write_bytes(wav_bytes(pcm16(samples), channels=2))
    row = Utterance("u", str(tmp_path / "x.wav"))
    chosen = LoaderSettings(8000, channel="split")
    assert [r.utterance.id for r in AudioLoader([row], chosen)] == ["u-ch0", "u-ch1"]
    (mixed,) = AudioLoader([row], LoaderSettings(8000, workers=1))
    assert len(mixed.waveform.samples) == 4000 and mixed.waveform.duration_s == 0.5
    pipe = Utterance("p", command=f"cat '{tmp_path / 'x.wav'}'")
    (refused,) = AudioLoader([pipe], SETTINGS)
    assert "--allow-pipes" in refused.failure.message


@pytest.mark.parametrize(
    "fields",
    [{"sample_rate": 0}, {"workers": 0}, {"ahead_seconds": 0.0}, {"ahead_rows": -1}, {"channel": "left"}],
)
def test_impossible_settings(fields):
    with pytest.raises(OptionsError, match=next(iter(fields))):
        replace(SETTINGS, **fields)


def test_a_halt_ends_the_list_even_while_a_reader_is_stuck() -> None:
    release, halted = threading.Event(), threading.Event()

    def rows():
        yield Utterance("a", samples=np.ones(100, np.float32), sample_rate=16000)
        release.wait(30)
        yield Utterance("b", samples=np.ones(100, np.float32), sample_rate=16000)

    loader = AudioLoader(rows(), LoaderSettings(16000, workers=1), halted=halted.is_set)
    got = iter(loader)
    assert next(got).utterance.id == "a"
    threading.Timer(0.3, halted.set).start()
    try:
        assert next(got, None) is None
    finally:
        release.set()
        loader.close()
        wait_until(lambda: not readers())  # it may still have been in the list, where nobody waits for it
