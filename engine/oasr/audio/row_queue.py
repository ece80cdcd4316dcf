"""What reader threads hand to the engine: rows in list order, pieces of long recordings among them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from oasr.audio.pieces import Piece
from oasr.types import RowFailure, Utterance, Waveform

_SLICE_S = 0.2
_IN_FRONT = 4
"""The row that comes next opens beyond `long_rows`, up to so many times as many that came out before it."""


class RowDroppedError(Exception):
    """The consumer has no use for the rest of a long recording."""


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """One row, read, or a piece of it, or the failure that takes its place.

    Attributes:
        utterance: None when the row was a failure before it came here.
        waveform: the whole row, when the loader was not told to plan windows.
        failure: why there is nothing, or nothing more.
        piece: the windows of the row, or some of them.
        number: the row's place among those that were read; with the channel it tells whose piece this is.
    """

    utterance: Utterance | None
    waveform: Waveform | None
    failure: RowFailure | None = None
    piece: Piece | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Bounds of a RowQueue.

    Attributes:
        rows: rows that may be taken from the list and not yet be consumed.
        seconds: audio seconds that may wait; the row that the consumer waits for always passes.
        long_rows: long recordings that may be open at once; some more where the consumer waits for them.
        sample_rate: Hz of windows.
        long_seconds: audio seconds of one long recording that may wait; its reader is faster than any model.
        overtaking: rows that may go past a long recording that is open; None = any number.
    """

    rows: int
    seconds: float
    long_rows: int
    sample_rate: int
    long_seconds: float = 120.0
    overtaking: int | None = None

    def seconds_of(self, rows: list[LoadedRow]) -> float:
        """Seconds of audio that `rows` hold in memory."""
        whole = sum(row.waveform.duration_s for row in rows if row.waveform is not None)
        windows = (window for row in rows if row.piece is not None for window in row.piece.windows)
        return whole + sum(len(window.samples) for window in windows) / self.sample_rate


class RowQueue:
    """Bounded hand-over from many readers to one consumer.

    Rows come out in list order. A long recording comes out in pieces: the first in its turn, the others as
    they are ready, one for each row that follows, so that neither waits for the other.

    Attributes:
        cancelled: set by `close`; readers give up what they are doing.
    """

    def __init__(self, limits: QueueLimits) -> None:
        """An empty queue."""
        self.limits = limits
        self.cancelled = threading.Event()
        self.state = threading.Condition()
        self.ready: dict[int, list[LoadedRow]] = {}
        self.ready_s = 0.0
        self.next = 0
        self._taken = 0
        self._end: int | None = None
        self._error: BaseException | None = None
        self._long: dict[int, deque[list[LoadedRow]]] = {}
        self._over: set[int] = set()
        self._dropped: set[int] = set()
        self._piece_is_due = True

    # The readers ------------------------------------------------------------------------------

    def wait_for_room(self) -> bool:
        """Wait until one more row may be taken from the list; False when none may ever."""
        with self.state:
            self.state.wait_for(lambda: self._closed or self._has_room)
            return not self._closed

    def enter(self) -> int:
        """The number of a row that was just taken from the list."""
        with self.state:
            self._taken += 1
            return self._taken - 1

    def end(self, error: BaseException | None) -> None:
        """The list is over, or broke with `error`, which the consumer gets in its place."""
        with self.state:
            self._end, self._error = self._taken, error
            self.state.notify_all()

    def put(self, number: int, rows: list[LoadedRow]) -> None:
        """Hand over a row that is whole, once there is room for it."""
        seconds = self.limits.seconds_of(rows)
        with self.state:
            # The row that the consumer waits for passes whatever its length: nothing else makes room for it.
            self.state.wait_for(lambda: self.cancelled.is_set() or number == self.next or self._fits(seconds))
            if not self.cancelled.is_set():
                self.ready[number] = rows
                self.ready_s += seconds
                self.state.notify_all()

    def put_piece(self, number: int, rows: list[LoadedRow], last: bool) -> float:
        """Hand over a piece of each row of a long recording, once there is room; the seconds waited.

        Raises:
            RowDroppedError: the consumer wants no more of it.
        """
        seconds, start = self.limits.seconds_of(rows), time.perf_counter()

        def fits() -> bool:
            if number in self._long:
                own_s = sum(map(self.limits.seconds_of, self._long[number]))
                room = own_s + seconds <= self.limits.long_seconds and self._fits(seconds)
                # One piece may always wait: rows that may not go past the recording could else keep it out.
                return not own_s or room
            if len(self._long) < self.limits.long_rows:
                return True
            # The row that all others wait for must not wait for them. It may wait for those in front of it,
            # which go on whatever is behind; else slow readers would open every long recording of the list.
            in_front = sum(other < number for other in self._long)
            return number == self.next and in_front < _IN_FRONT * self.limits.long_rows

        with self.state:
            self.state.wait_for(lambda: self.cancelled.is_set() or number in self._dropped or fits())
            if number in self._dropped:
                self._dropped.discard(number)
                raise RowDroppedError
            if not self.cancelled.is_set():
                self._long.setdefault(number, deque()).append(rows)
                self.ready_s += seconds
                if last:
                    self._over.add(number)
                self.state.notify_all()
        return time.perf_counter() - start

    # The consumer -----------------------------------------------------------------------------

    def take(self, halted: Callable[[], bool]) -> list[LoadedRow] | None:
        """The next rows or pieces, waiting for them; None at the end, or once `halted` says True."""
        with self.state:
            # In slices: a signal handler may set a flag, but must not take the lock to notify.
            while not self.state.wait_for(lambda: self.settled, timeout=_SLICE_S):
                if halted():
                    return None
            if self.cancelled.is_set():
                return None
            rows = self._pop()
            if rows is None:
                if self._error is not None:
                    raise self._error
                return None
            self.ready_s -= self.limits.seconds_of(rows)
            self.state.notify_all()
            return rows

    def drop(self, number: int) -> None:
        """No more pieces of row `number` are wanted."""
        with self.state:
            waiting = self._long.pop(number, None)
            if waiting is None:
                return
            self.ready_s -= sum(map(self.limits.seconds_of, waiting))
            # A reader that has more to say hears of it at its next piece; one that is done never asks again.
            if number in self._over:
                self._over.discard(number)
            else:
                self._dropped.add(number)
            self.state.notify_all()

    def close(self) -> None:
        """Wake everybody up; nothing comes out any more."""
        self.cancelled.set()
        with self.state:
            self.state.notify_all()
            self.ready.clear()
            self._long.clear()

    @property
    def settled(self) -> bool:
        """True when `take` need not wait."""
        return self.cancelled.is_set() or self._head or self._piece() is not None or self._at_end

    @property
    def _closed(self) -> bool:
        return self.cancelled.is_set() or self._end is not None

    @property
    def _has_room(self) -> bool:
        return self._taken - self.next < self.limits.rows and self.ready_s < self.limits.seconds

    def _fits(self, seconds: float) -> bool:
        return self.ready_s + seconds <= self.limits.seconds

    @property
    def _at_end(self) -> bool:
        return self._end is not None and self.next >= self._end and not self._long

    @property
    def _head(self) -> bool:
        """Whether the next row of the list may come out."""
        if self.next not in self.ready and self.next not in self._long:
            return False
        limit = self.limits.overtaking
        first = min((number for number in self._long if number < self.next), default=self.next)
        return limit is None or self.next - first <= limit

    def _piece(self) -> int | None:
        """The long recording, begun before, whose turn it is."""
        return next((n for n, pieces in self._long.items() if n < self.next and pieces), None)

    def _pop(self) -> list[LoadedRow] | None:
        number = self._piece()
        # Where both are there, a row of the list and a piece of an open recording come out in turns.
        if self._head and (number is None or not self._piece_is_due):
            self._piece_is_due = True
            self.next += 1
            if self.next - 1 in self.ready:
                return self.ready.pop(self.next - 1)
            number = self.next - 1
        elif number is None:
            return None
        else:
            self._piece_is_due = False
        # Behind the others, so that every open recording gets its turn.
        pieces = self._long.pop(number)
        rows = pieces.popleft()
        if pieces or number not in self._over:
            self._long[number] = pieces
        else:
            self._over.discard(number)
        return rows
