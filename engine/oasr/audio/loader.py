"""Reader threads that run ahead of the engine in a bounded queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType

from oasr.audio.channels import Channel, parse_channel
from oasr.audio.streams import ReadCancelledError
from oasr.audio.waveform import read_waveforms
from oasr.errors import AudioError, OptionsError
from oasr.types import RowFailure, Utterance, Waveform

_JOIN_S = 10.0
_SLICE_S = 0.2


@dataclass(frozen=True, slots=True)
class LoaderSettings:
    """How recordings are read.

    Attributes:
        sample_rate: Hz that the model takes.
        workers: reader threads.
        ahead_seconds: audio seconds that may wait for the consumer; the row that it waits for always passes.
        ahead_rows: rows that may be taken from the list and not yet be consumed.
        channel: "mix", "split" or a channel number from 0 on, for rows that do not say.
        allow_pipes: run the shell commands of Kaldi rows.
    """

    sample_rate: int
    workers: int = 2
    ahead_seconds: float = 600.0
    ahead_rows: int = 64
    channel: Channel = "mix"
    allow_pipes: bool = False

    def __post_init__(self) -> None:
        """Raise OptionsError for a value that no reader could use."""
        for name in ("sample_rate", "workers", "ahead_seconds", "ahead_rows"):
            if not getattr(self, name) > 0:
                raise OptionsError(f"{name}: expected a number > 0, got {getattr(self, name)!r}")
        parse_channel(self.channel)


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """One row, read: a waveform or the failure that takes its place.

    `utterance` is None when the row was a failure before it came here.
    """

    utterance: Utterance | None
    waveform: Waveform | None
    failure: RowFailure | None = None


class AudioLoader:
    """Iterates over the rows of a list, read, in list order; a split row gives several.

    Rows are taken from `rows` only as the queue has room, on the reader threads, one at a time. Beside the
    queue each reader holds at most one recording. An exception of `rows` itself is raised where its row
    would have come. Leaving the loop early, an exception in it and `close` all stop the readers.
    """

    def __init__(
        self,
        rows: Iterable[Utterance | RowFailure],
        settings: LoaderSettings,
        halted: Callable[[], bool] = lambda: False,
    ) -> None:
        """Nothing is read before the first row is asked for.

        Args:
            rows: the list.
            settings: how to read it.
            halted: once it says True the list ends here, even while a reader is stuck in a pipe.
        """
        self._halted = halted
        self._rows = iter(rows)
        self._settings = settings
        self._cancel = threading.Event()
        self._state = threading.Condition()
        self._source = threading.Lock()
        self._in_source: threading.Thread | None = None
        self._threads: list[threading.Thread] = []
        self._ready: dict[int, list[LoadedRow]] = {}
        self._ready_s = 0.0
        self._taken = 0
        self._next = 0
        self._end: int | None = None
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[LoadedRow]:
        """The rows, once."""
        if self._threads or self._cancel.is_set():
            raise RuntimeError("an AudioLoader can be iterated once; make a new one")
        for number in range(self._settings.workers):
            thread = threading.Thread(target=self._work, name=f"oasr-reader-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self._consume()

    def __enter__(self) -> AudioLoader:
        """The loader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the readers."""
        self.close()

    def close(self) -> None:
        """Stop the readers and wait for them; what they were decoding is given up. Safe to call twice."""
        self._cancel.set()
        with self._state:
            self._state.notify_all()
            self._ready.clear()
        for thread in self._threads:
            # A read from a terminal or pipe cannot be interrupted; such a thread ends with the process.
            if thread is not self._in_source and thread is not threading.current_thread():
                thread.join(_JOIN_S)

    def _consume(self) -> Iterator[LoadedRow]:
        try:
            while (rows := self._take()) is not None:
                yield from rows
        finally:
            self.close()

    def _take(self) -> list[LoadedRow] | None:
        """The next row in order, None at the end."""
        with self._state:
            # In slices: a signal handler may set a flag, but must not take the lock to notify.
            while not self._state.wait_for(self._settled, timeout=_SLICE_S):
                if self._halted():
                    return None
            rows = self._ready.pop(self._next, None)
            if rows is not None:
                self._ready_s -= _seconds(rows)
                self._next += 1
                self._state.notify_all()
            elif self._error is not None and not self._cancel.is_set():
                raise self._error
            return rows

    def _settled(self) -> bool:
        return self._cancel.is_set() or self._next in self._ready or self._at_end()

    def _at_end(self) -> bool:
        return self._end is not None and self._next >= self._end

    def _work(self) -> None:
        while (claim := self._claim()) is not None:
            number, row = claim
            try:
                rows = self._read(row)
            except ReadCancelledError:
                return
            self._put(number, rows)

    def _claim(self) -> tuple[int, Utterance | RowFailure] | None:
        """The next row of the list and its number, once the queue has room; None when there is no more."""
        with self._source:
            with self._state:
                self._state.wait_for(
                    lambda: self._cancel.is_set() or self._end is not None or self._has_room()
                )
                if self._cancel.is_set() or self._end is not None:
                    return None
                self._in_source = threading.current_thread()
            row, error = None, None
            try:
                row = next(self._rows, None)
            except BaseException as raised:
                error = raised
            with self._state:
                self._in_source = None
                number = self._taken
                if row is None:
                    self._end, self._error = number, error
                    self._state.notify_all()
                    return None
                self._taken += 1
                return number, row

    def _has_room(self) -> bool:
        limit = self._settings
        return self._taken - self._next < limit.ahead_rows and self._ready_s < limit.ahead_seconds

    def _put(self, number: int, rows: list[LoadedRow]) -> None:
        seconds = _seconds(rows)

        def fits() -> bool:
            return number == self._next or self._ready_s + seconds <= self._settings.ahead_seconds

        with self._state:
            self._state.wait_for(lambda: self._cancel.is_set() or fits())
            if not self._cancel.is_set():
                self._ready[number] = rows
                self._ready_s += seconds
                self._state.notify_all()

    def _read(self, row: Utterance | RowFailure) -> list[LoadedRow]:
        """Whatever happens to a row, a row comes out."""
        if isinstance(row, RowFailure):
            return [LoadedRow(None, None, row)]
        settings = self._settings
        try:
            pairs = read_waveforms(
                row,
                settings.sample_rate,
                settings.channel,
                allow_pipes=settings.allow_pipes,
                cancel=self._cancel,
            )
        except AudioError as error:
            return [LoadedRow(row, None, RowFailure.of(row, error))]
        except ReadCancelledError:
            raise
        except Exception as error:
            wrapped = AudioError(f"{row.audio or row.id}: the reader broke: {type(error).__name__}: {error}")
            return [LoadedRow(row, None, RowFailure.of(row, wrapped))]
        return [LoadedRow(utterance, waveform) for utterance, waveform in pairs]


def _seconds(rows: list[LoadedRow]) -> float:
    return sum(row.waveform.duration_s for row in rows if row.waveform is not None)
