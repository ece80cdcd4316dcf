"""One engine, several callers: nobody gets another's rows, nobody waits for ever."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

from oasr.launch.host import EngineHost
from oasr.types import RequestOutput, RowFailure, Utterance

MIX, SPLIT = SimpleNamespace(channel="mix"), SimpleNamespace(channel="split")


class Echo:
    """An engine that looks some rows ahead and gives results in any order; counts its streams."""

    def __init__(self, ahead: int = 7) -> None:
        self.ahead, self.streams, self.order = ahead, 0, random.Random(0)
        self.halt = threading.Event()
        self.hold: threading.Event | None = None

    def stop(self) -> None:
        self.halt.set()

    def stream(self, rows, options, settings):
        self.streams += 1
        held = []
        for row in rows:
            held.append(row)
            if self.hold is not None:
                self.hold.wait(10)
            if self.halt.is_set():
                return
            if len(held) > self.ahead:
                yield from self._results(held.pop(self.order.randrange(len(held))), settings)
        self.order.shuffle(held)
        for row in held:
            yield from self._results(row, settings)

    def _results(self, row, settings):
        failed = isinstance(row, RowFailure)
        parts = 2 if settings.channel == "split" and not failed else 1
        for part in range(parts):
            yield replace(row, part=part), RequestOutput(row.id, None if failed else f"heard {row.id}")


def _broke(error: BaseException) -> None:
    raise AssertionError(error)


def _windows(count: int, size: int) -> list[list[Utterance | RowFailure]]:
    rows = [
        RowFailure(f"r{index}", index, "manifest", "no")
        if index % 5 == 3
        else Utterance(f"r{index}", "", index)
        for index in range(count * size)
    ]
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def test_each_caller_gets_its_own_rows_in_their_order():
    engine, windows = Echo(), _windows(40, 3)
    host = EngineHost(engine, None, MIX, _broke)
    with ThreadPoolExecutor(8) as callers:
        found = list(callers.map(host.results, windows))
    assert [[row.id for row, _ in results] for results in found] == [[r.id for r in w] for w in windows]
    assert all(output.request_id == row.id for results in found for row, output in results)
    assert engine.streams < 40  # callers share a stream


def test_a_window_is_finished_though_no_other_comes():
    host = EngineHost(Echo(ahead=100), None, MIX, _broke)
    for window in _windows(3, 2):
        assert len(host.results(window)) == 2
    assert host.results([]) == []


def test_split_recordings_give_all_their_channels():
    host, windows = EngineHost(Echo(), None, SPLIT, _broke), _windows(6, 4)
    with ThreadPoolExecutor(3) as callers:
        found = list(callers.map(host.results, windows))
    for results, window in zip(found, windows, strict=True):
        expected = [(row.id, part) for row in window for part in range(1 + isinstance(row, Utterance))]
        assert [(row.id, row.part) for row, _ in results] == expected


def test_a_stop_lets_every_caller_go():
    engine = Echo(ahead=100)
    engine.hold = threading.Event()
    host = EngineHost(engine, None, MIX, _broke)
    with ThreadPoolExecutor(6) as callers:
        waiting = [callers.submit(host.results, window) for window in _windows(6, 3)]
        host.stop()
        engine.hold.set()
        assert all(len(one.result(timeout=10)) <= 3 for one in waiting)
    assert host.results(_windows(1, 2)[0]) == []


class Hasty(Echo):
    """Ends its stream while a thread of its own is still about to ask for rows, as a reader may at a stop."""

    def stream(self, rows, options, settings):
        self.streams += 1
        self.late = threading.Thread(target=lambda: (self.hold.wait(10), list(rows)))
        self.late.start()
        return iter(())


def test_rows_that_are_taken_when_the_stream_is_over_let_their_caller_go():
    engine, (one, two) = Hasty(), _windows(2, 3)
    engine.hold = threading.Event()
    host = EngineHost(engine, None, MIX, _broke)
    assert host.results(one) == []
    with ThreadPoolExecutor(1) as caller:
        waiting = caller.submit(host.results, two)
        engine.hold.set()
        assert waiting.result(10) == []
    engine.late.join(10)
    assert not host._open


def test_an_engine_that_breaks_is_told():
    told: list[BaseException] = []
    known = threading.Event()

    class Broken(Echo):
        def stream(self, rows, options, settings):
            raise RuntimeError("the device is lost")

    host = EngineHost(Broken(), None, MIX, lambda error: (told.append(error), known.set()))
    threading.Thread(target=host.results, args=(_windows(1, 1)[0],), daemon=True).start()
    assert known.wait(10) and str(told[0]) == "the device is lost"
