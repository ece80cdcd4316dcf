"""Keeps one engine busy with the rows of several callers at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oasr.types import RequestOutput, RowFailure, Utterance

Row = Utterance | RowFailure
Result = tuple[Row, RequestOutput]
LINGER_S = 0.1
"""Seconds without rows after which the engine finishes what it has, rather than wait for fuller batches."""


class _Ticket:
    """The rows of one caller, and what has come of them.

    Attributes:
        left: rows of which nothing is known yet; None while only the end of the stream tells, because a
            recording that is split gives several results.
        done: set when the results are complete, or no more will come.
    """

    def __init__(self, rows: Sequence[Row], split: bool) -> None:
        self.rows, self.results = rows, list[Result]()
        self.left = None if split else len(rows)
        self.done = threading.Event()

    def add(self, result: Result) -> None:
        """Take one result."""
        self.results.append(result)
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.done.set()


class EngineHost:
    """One engine on a thread of its own, any number of callers.

    The rows of all callers run through one `Engine.stream`, so that the engine never runs dry between two
    windows: while the last rows of one are decoded, those of the next are read and batched. Only when no
    caller has rows left does the stream end.
    """

    def __init__(
        self, engine: Any, options: Any, settings: Any, on_break: Callable[[BaseException], None]
    ) -> None:
        """Start the thread.

        Args:
            engine: a loaded Engine; nobody else may use it.
            options: DecodingOptions of all rows.
            settings: LoaderSettings.
            on_break: told of an exception that ends the engine's work, from its thread.
        """
        self._engine, self._options, self._settings = engine, options, settings
        self._on_break = on_break
        self._waiting: queue.SimpleQueue[_Ticket] = queue.SimpleQueue()
        self._open: dict[int, _Ticket] = {}
        self._stopped = False
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name="oasr-engine", daemon=True).start()

    def results(self, rows: Sequence[Row]) -> list[Result]:
        """Transcribe rows, each with an `index` of its own; waits. In their order; fewer after `stop`."""
        split = any(_splits(row, self._settings.channel) for row in rows)
        ticket = _Ticket(rows, split)
        with self._lock:
            if self._stopped or not rows:
                return []
            self._waiting.put(ticket)
        ticket.done.wait()
        return sorted(ticket.results, key=lambda result: (result[0].index, result[0].part))

    def stop(self) -> None:
        """Finish the batch that is being computed; all callers get what is finished by then."""
        with self._lock:
            self._stopped = True
            self._engine.stop()

    def _work(self) -> None:
        try:
            while True:
                first = self._waiting.get()
                self._transcribe(first)
        except BaseException as error:
            # The callers are left waiting: the process is about to end, and Ray runs their windows again.
            self._on_break(error)

    def _transcribe(self, first: _Ticket) -> None:
        """One stream, from the first waiting caller until none is left."""
        over = threading.Event()
        if not self._stopped:
            for row, output in self._engine.stream(self._rows(first, over), self._options, self._settings):
                ticket = self._open[row.index]
                ticket.add((row, output))
                if ticket.done.is_set():
                    self._close(ticket)
        # By itself, since after a stop the stream may never have taken it in.
        first.done.set()
        # Windows that a stop cut short, and those with split recordings, which only the end completes.
        with self._lock:
            over.set()
            for ticket in self._open.values():
                ticket.done.set()
            self._open.clear()

    def _rows(self, first: _Ticket, over: threading.Event) -> Iterator[Row]:
        """The rows of the callers, one after the other; runs on the engine's reader threads."""
        ticket: _Ticket | None = first
        while ticket is not None and not self._stopped:
            with self._lock:
                # After a stop the stream ends without waiting for this thread, and with it all that is open.
                if over.is_set():
                    break
                # Before the rows go out: results come while later rows are still being read.
                self._open |= {row.index: ticket for row in ticket.rows}
            yield from ticket.rows
            try:
                ticket = self._waiting.get(timeout=LINGER_S)
            except queue.Empty:
                ticket = None
        # It came at the moment of a stop: none of its rows went out, and its caller must not wait.
        if ticket is not None:
            ticket.done.set()

    def _close(self, ticket: _Ticket) -> None:
        for row in ticket.rows:
            self._open.pop(row.index, None)


def _splits(row: Row, channel: int | str) -> bool:
    """Whether a row may give more than one result."""
    if isinstance(row, RowFailure):
        return False
    return (channel if row.channel is None else row.channel) == "split"
