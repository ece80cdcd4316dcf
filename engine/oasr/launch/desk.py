"""The Desk: the small actor through which the driver and the engines of a run speak."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

from oasr.launch.facts import EngineFacts

NOTHING = pickle.dumps([])
"""A window without rows."""


class Desk:
    """Keeps the windows that have no result yet, so that any of them can be asked for again.

    Lives as a Ray actor without a processor of its own, beside the driver. Ray's retries rest on it: a window
    has a number, and whoever asks for a number gets the same rows until the driver has their results.
    """

    def __init__(self) -> None:
        """An empty desk."""
        self._windows: dict[int, bytes] = {}
        self._handed_in = 0
        self._complete = self._stopped = False
        self._orders: bytes | None = None
        self._reports: list[Any] = []
        self._begun = self._loaded = 0
        self._news = asyncio.Condition()

    # Of the driver ----------------------------------------------------------------------------

    async def order(self, orders: bytes) -> None:
        """What every engine is to do with the rows it gets."""
        async with self._news:
            self._orders = orders
            self._news.notify_all()

    async def hand_in(self, number: int, rows: bytes) -> None:
        """Lay out window `number`; they come in order."""
        async with self._news:
            self._windows[number], self._handed_in = rows, number + 1
            self._news.notify_all()

    async def complete(self) -> None:
        """No window comes after those that are here."""
        async with self._news:
            self._complete = True
            self._news.notify_all()

    async def forget(self, number: int) -> None:
        """The driver has the results of this window."""
        self._windows.pop(number, None)

    async def stop(self) -> None:
        """Engines finish what they are computing and hand back the rest; no window is given out any more."""
        async with self._news:
            self._stopped = True
            self._news.notify_all()

    async def read_report(self, place: int) -> Any:
        """Report number `place`, once it is there."""
        async with self._news:
            await self._news.wait_for(lambda: len(self._reports) > place)
            return self._reports[place]

    # Of the engines ---------------------------------------------------------------------------

    async def window(self, number: int) -> bytes | None:
        """The rows of a window, once they are there; None behind the last one."""
        async with self._news:
            await self._news.wait_for(lambda: self._handed_in > number or self._complete or self._stopped)
            if self._stopped or self._handed_in <= number:
                return None
            # One that was forgotten is written: run again, it must not give its rows a second time.
            return self._windows.get(number, NOTHING)

    async def orders(self) -> bytes:
        """What to do, once it is known."""
        async with self._news:
            await self._news.wait_for(lambda: self._orders is not None)
            return self._orders or NOTHING

    async def stopped(self) -> None:
        """Returns when the run is to stop."""
        async with self._news:
            await self._news.wait_for(lambda: self._stopped)

    async def begin(self) -> int:
        """An engine begins to load; how many have begun, this one too, and have not loaded so far."""
        self._begun += 1
        return self._begun - self._loaded

    async def report(self, what: Any) -> None:
        """EngineFacts of an engine that has loaded, or the error for which one could not or cannot go on."""
        async with self._news:
            self._loaded += isinstance(what, EngineFacts)
            self._reports.append(what)
            self._news.notify_all()
