"""Stretches of a CUDA stream's time, measured without waiting for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

FOLD_AT = 4096
"""Open spans that are kept before those that are over are added up, so that a long run holds few events."""


class Event(Protocol):
    """What is used of a recorded `torch.cuda.Event`."""

    def query(self) -> bool:
        """True once the stream has passed the mark."""
        ...

    def synchronize(self) -> object:
        """Wait until the stream has passed the mark."""
        ...

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this mark to `end_event`; both must have been passed."""
        ...


class DeviceSpans:
    """Seconds of each station on the device, from pairs of events around what the host launches.

    The events ride on the stream beside the work and nobody waits for one before `collect`. A span is
    the stream's own time between its two events, the gaps between its kernels included.
    """

    def __init__(self, mark: Callable[[], Event]) -> None:
        """`mark` puts an event on the stream of the work, behind what was launched so far."""
        self.mark = mark
        self._open: list[tuple[str, Event, Event]] = []
        self._seconds: dict[str, float] = {}

    @classmethod
    def on(cls, device: torch.device) -> DeviceSpans:
        """Spans of whichever stream is current on the CUDA device `device`."""
        import torch

        def mark() -> torch.cuda.Event:
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(device))
            return event

        return cls(mark)

    def close(self, station: str, begin: Event) -> None:
        """End the span that the mark `begin` started."""
        self._open.append((station, begin, self.mark()))
        if len(self._open) >= FOLD_AT:
            # The stream works in order, so what is over stands in front.
            over = next((n for n, span in enumerate(self._open) if not span[2].query()), len(self._open))
            self._add(over)

    def collect(self) -> dict[str, float]:
        """Wait for the last span and return the seconds of each station so far."""
        if self._open:
            self._open[-1][2].synchronize()
        self._add(len(self._open))
        return dict(self._seconds)

    def _add(self, count: int) -> None:
        """Add up the first `count` spans, which are over, and let their events go."""
        for station, begin, end in self._open[:count]:
            self._seconds[station] = self._seconds.get(station, 0.0) + begin.elapsed_time(end) / 1000
        del self._open[:count]
