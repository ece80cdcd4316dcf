"""SIGINT and SIGTERM: the first asks the run to finish the batch in flight, the second stops it now."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from oasr_cli.console import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSwitch:
    """Handles the signals inside its `with` block.

    Before `on_stop` is set there is nothing to finish, so the first signal raises Interrupted.
    Afterwards the first one calls it, which must only set a flag: the handler may run in the
    middle of anything.
    """

    def __init__(self) -> None:
        """A switch that has not been thrown."""
        self.on_stop: Callable[[], None] | None = None
        self.signum: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def thrown(self) -> bool:
        """True once a signal came."""
        return self.signum is not None

    def __enter__(self) -> StopSwitch:
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.on_stop is None or self.thrown:
            raise Interrupted(signum)
        # Before the call, in the middle of which a second signal may come.
        self.signum = signum
        self.on_stop()
