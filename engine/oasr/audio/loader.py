"""Reader threads that run ahead of the engine in a bounded queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType

from oasr.audio.channels import Channel, parse_channel
from oasr.audio.pieces import Parts, PieceReader
from oasr.audio.row_queue import LoadedRow, QueueLimits, RowDroppedError, RowQueue
from oasr.audio.streams import ReadCancelledError
from oasr.audio.waveform import read_waveforms
from oasr.audio.windows import Planning
from oasr.errors import AudioError, OptionsError, RowError
from oasr.types import RowFailure, Utterance

__all__ = ["AudioLoader", "LoadedRow", "LoaderSettings"]
# Readers look at `cancelled` between two blocks. One that gets no block, from a network drive that hangs,
# is left behind: its thread is a daemon and ends with the process.
_JOIN_S = 10.0


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
        planning: cut recordings into windows; None = hand over whole waveforms, however long.
        overtaking: rows that may go past a long recording that is still being read; None = any number.
    """

    sample_rate: int
    workers: int = 2
    ahead_seconds: float = 600.0
    ahead_rows: int = 64
    channel: Channel = "mix"
    allow_pipes: bool = False
    planning: Planning | None = None
    overtaking: int | None = None

    def __post_init__(self) -> None:
        """Raise OptionsError for a value that no reader could use."""
        for name in ("sample_rate", "workers", "ahead_seconds", "ahead_rows"):
            if not getattr(self, name) > 0:
                raise OptionsError(f"{name}: expected a number > 0, got {getattr(self, name)!r}")
        parse_channel(self.channel)


class AudioLoader:
    """Iterates over the rows of a list, read, in list order; a split row gives several.

    Rows are taken from `rows` only as the queue has room, on the reader threads, one at a time. Beside the
    queue each reader holds at most one recording, or of a long one what its next window needs. While a reader
    is busy with a long recording another one takes its place, so that the rows behind are not kept waiting
    (`row_queue.RowQueue` says how they share the way out). An exception of `rows` itself is raised where its
    row would have come. Leaving the loop early, an exception in it and `close` all stop the readers.

    Attributes:
        waited_s: seconds that the consumer has spent waiting for a row.
        reading_s: seconds that all readers together have spent on recordings, which run in parallel.
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
        self._queue = RowQueue(
            QueueLimits(
                settings.ahead_rows,
                settings.ahead_seconds,
                settings.workers,
                settings.sample_rate,
                overtaking=settings.overtaking,
            )
        )
        self._source = threading.Lock()
        self._in_source: threading.Thread | None = None
        self._threads: list[threading.Thread] = []
        self._started = False
        self.waited_s = self.reading_s = 0.0

    def __iter__(self) -> Iterator[LoadedRow]:
        """The rows, once."""
        if self._started or self._queue.cancelled.is_set():
            raise RuntimeError("an AudioLoader can be iterated once; make a new one")
        self._started = True
        for _ in range(self._settings.workers):
            self._start_reader()
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
        self._queue.close()
        with self._queue.state:
            threads = list(self._threads)
        for thread in threads:
            # A read from a terminal or pipe cannot be interrupted; such a thread ends with the process.
            if thread is not self._in_source and thread is not threading.current_thread():
                thread.join(_JOIN_S)

    def drop(self, number: int) -> None:
        """No more pieces of the row `number` (LoadedRow.number) are wanted: its reader gives it up."""
        self._queue.drop(number)

    def _consume(self) -> Iterator[LoadedRow]:
        try:
            while (rows := self._take()) is not None:
                yield from rows
        finally:
            self.close()

    def _take(self) -> list[LoadedRow] | None:
        """The next row in order, or pieces of a long one; None at the end."""
        start = time.perf_counter()
        try:
            return self._queue.take(self._halted)
        finally:
            self.waited_s += time.perf_counter() - start

    def _start_reader(self) -> None:
        with self._queue.state:
            if self._queue.cancelled.is_set():
                return
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            thread = threading.Thread(target=self._work, name="oasr-reader", daemon=True)
            self._threads.append(thread)
            # Started under the lock: a thread that has not begun would look dead to the next one.
            thread.start()

    def _work(self) -> None:
        while (claim := self._claim()) is not None:
            number, row = claim
            task = _Task(self, number, row)
            start = time.perf_counter()
            try:
                rows = task.run()
            except (ReadCancelledError, RowDroppedError):
                rows = []
            with self._queue.state:
                # Under the lock, since all readers add to one number.
                self.reading_s += time.perf_counter() - start - task.waited_s
            if task.is_long or self._queue.cancelled.is_set():
                return  # another reader has taken this one's place
            self._queue.put(number, rows)

    def _claim(self) -> tuple[int, Utterance | RowFailure] | None:
        """The next row of the list and its number, once the queue has room; None when there is no more."""
        # Taking a row and numbering it are one step, so that numbers are those of the list.
        with self._source:
            if not self._queue.wait_for_room():
                return None
            self._in_source = threading.current_thread()
            row, error = None, None
            try:
                row = next(self._rows, None)
            # Of whatever kind it is: raised on this thread, nobody would see it.
            except BaseException as raised:
                error = raised
            self._in_source = None
            if row is None:
                self._queue.end(error)
                return None
            return self._queue.enter(), row


class _Task:
    """One row on a reader thread.

    Attributes:
        is_long: pieces of it have gone out, and all that is left of it goes the same way.
        waited_s: seconds spent on waiting for the queue.
    """

    def __init__(self, loader: AudioLoader, number: int, row: Utterance | RowFailure) -> None:
        self.is_long, self.waited_s = False, 0.0
        self._loader, self._number, self._row = loader, number, row
        self._utterances: list[Utterance] = []

    def run(self) -> list[LoadedRow]:
        """Read the row. Whatever happens to it, a row comes out: here, or as its last piece."""
        row = self._row
        if isinstance(row, RowFailure):
            return [LoadedRow(None, None, row, number=self._number)]
        try:
            return self._read(row)
        except RowError as error:
            return self._failed(row, error)
        except (ReadCancelledError, RowDroppedError):
            raise
        except Exception as error:
            where = row.audio or row.id
            return self._failed(
                row, AudioError(f"{where}: the reader broke: {type(error).__name__}: {error}")
            )

    def _read(self, row: Utterance) -> list[LoadedRow]:
        settings, cancel = self._loader._settings, self._loader._queue.cancelled
        if settings.planning is None:
            pairs = read_waveforms(
                row,
                settings.sample_rate,
                settings.channel,
                allow_pipes=settings.allow_pipes,
                cancel=cancel,
            )
            return [LoadedRow(one, waveform, number=self._number) for one, waveform in pairs]
        whole: list[LoadedRow] = []
        reader = PieceReader(
            settings.sample_rate, settings.planning, settings.channel, settings.allow_pipes, cancel
        )
        reader.read(row, lambda parts: whole.extend(self._passed_on(parts)))
        return whole

    def _passed_on(self, parts: Parts) -> list[LoadedRow]:
        """The rows, when the recording comes in one piece; [] once they are on their way."""
        rows = [LoadedRow(one, None, piece=piece, number=self._number) for one, piece in parts]
        ended = any(piece.ended for _, piece in parts)
        if ended and not self.is_long:
            return rows
        # The first piece goes out without windows too, since the row is admitted by it; of those between, one
        # without windows would only take a turn in the queue.
        if ended or not self.is_long or any(piece.windows for _, piece in parts):
            self._put(rows, ended)
        self._utterances = [one for one, _ in parts]
        return []

    def _put(self, rows: list[LoadedRow], last: bool) -> None:
        """Hand over a piece; at the first one this reader is replaced."""
        self.waited_s += self._loader._queue.put_piece(self._number, rows, last)
        if not self.is_long:
            self.is_long = True
            self._loader._start_reader()

    def _failed(self, row: Utterance, error: RowError) -> list[LoadedRow]:
        # Each row that this recording has begun, one a channel when it is split, waits for its end.
        rows = [
            LoadedRow(one, None, RowFailure.of(one, error), number=self._number)
            for one in self._utterances or [row]
        ]
        if self.is_long:
            self._put(rows, last=True)
            return []
        return rows
