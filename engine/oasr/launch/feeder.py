"""The driver's side of the list: reads it as far ahead as the engines need, window by window."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from oasr.launch.host import Row
from oasr.manifest.dialect import MAX_SECONDS
from oasr.types import Utterance

WINDOW_SECONDS = 600.0
"""Audio after which a window ends, whatever its rows: results leave window by window."""
MOST_AT_ONCE = 64
"""Windows that one engine holds at most."""
BYTES_A_SECOND = 16000
"""Taken for a recording whose length its row does not tell: between FLAC and MP3 of speech."""


@dataclass(frozen=True, slots=True)
class Windows:
    """How the list is cut.

    Attributes:
        rows: most rows in one window.
        at_once: windows that one engine holds.
        ahead: windows that may be on their way, from the list to the written results.
    """

    rows: int
    at_once: int
    ahead: int

    @classmethod
    def of(cls, batch_rows: int, engines: int, total: int | None) -> Windows:
        """Small windows, many at a time: at the end of the list no engine is ahead of the others by much.

        An engine holds eight of its batches, and the look-ahead of its readers and its batcher on top: a
        window goes back only when its last row is decoded, so many rows of those here are done already.
        """
        rows = max(16, batch_rows // 4)
        if total is not None:
            # Eight windows or more for each engine: the last one under way is a small part of its work.
            rows = max(1, min(rows, total // (8 * engines)))
        # Bounded, since each window that an engine holds keeps a thread of its process waiting.
        at_once = min(MOST_AT_ONCE, max(4, (8 * batch_rows + 256) // rows))
        if total is not None:
            # The engine that is up first must leave some of a short list to the others.
            at_once = min(at_once, max(2, total // (2 * engines * rows)))
        # More than the engines hold: windows are to wait for engines, and not engines for windows.
        return cls(rows, at_once, 4 * at_once * engines)


class Feeder:
    """Reads rows on a thread of its own and hands in windows; at most `Windows.ahead` are under way.

    Attributes:
        windows: handed in so far.
        error: what the list itself raised.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        windows: Windows,
        hand_in: Callable[[int, bytes], object],
        complete: Callable[[], object],
    ) -> None:
        """Start the thread.

        Args:
            rows: the list, iterated on that thread.
            windows: how it is cut.
            hand_in: takes a window, pickled.
            complete: called when all windows are handed in.
        """
        self.windows, self.error = 0, None
        self._rows, self._size = rows, windows.rows
        self._room = threading.Semaphore(windows.ahead)
        self._hand_in, self._complete = hand_in, complete
        self._stopped = False
        self.thread = threading.Thread(target=self._work, name="oasr-feeder", daemon=True)
        self.thread.start()

    error: BaseException | None

    def returned(self) -> None:
        """The results of one more window are written."""
        self._room.release()

    def stop(self) -> None:
        """Read no further. Only sets a flag and wakes the thread."""
        self._stopped = True
        self._room.release()

    def _work(self) -> None:
        try:
            for window in cut(self._rows, self._size):
                self._room.acquire()
                if self._stopped:
                    break
                self._hand_in(self.windows, pickle.dumps(window))
                self.windows += 1
        except BaseException as error:
            self.error = error
        with suppress(Exception):  # whoever takes windows may be gone, and then needs no word of it
            self._complete()


def cut(rows: Iterable[Row], most: int) -> Iterator[Sequence[Row]]:
    """Windows of at most `most` rows, and of no more audio than WINDOW_SECONDS beyond their first row."""
    window: list[Row] = []
    seconds = 0.0
    for row in rows:
        length = _seconds(row)
        if window and (len(window) == most or seconds + length > WINDOW_SECONDS):
            yield window
            window, seconds = [], 0.0
        window.append(row)
        seconds += length
    if window:
        yield window


def _seconds(row: Row) -> float:
    """About how much audio a row is."""
    if not isinstance(row, Utterance):
        return 0.0
    for stated in (row.duration, row.row.get("duration")):
        # 0 means that nobody measured it, and True is an int; a row made by hand may hold anything.
        if isinstance(stated, int | float) and stated is not True and 0 < stated <= MAX_SECONDS:
            return float(stated)
    try:
        return Path(row.audio).stat().st_size / BYTES_A_SECOND
    except (OSError, ValueError):
        return 0.0
