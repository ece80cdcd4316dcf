"""Which requests share a micro-batch: length buckets inside a bounded look-ahead window."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from oasr.types import Request


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bounds of one micro-batch.

    Attributes:
        rows: most rows.
        padded_seconds: most rows × window seconds; None = rows alone decide. One row always fits.
        lookahead_rows: how many requests the buffer holds before it asks for no more.
        lookahead_seconds: the same in seconds of audio, once there are requests for two batches: windows of
            a long recording are all of about one length, so that seeing many of them ahead gains nothing.
    """

    rows: int
    padded_seconds: float | None = None
    lookahead_rows: int = 128
    lookahead_seconds: float = 960.0


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Requests of one window length that are encoded together."""

    requests: tuple[Request, ...]
    window_samples: int


class LookaheadBuffer:
    """Requests waiting for the engine, cut into micro-batches of one window each.

    Only rows with the same window share a batch: a row is padded by its own length alone, so its
    result cannot depend on its neighbours. Inside a window, rows of similar length go together
    (their transcripts, and so their decoder steps, are of similar length). The oldest waiting
    request anchors each batch, so nothing starves and order stays close to arrival.
    """

    def __init__(self, limits: BatchLimits, window_of: Callable[[Request], int]) -> None:
        """`window_of` gives a request's padded length in samples."""
        self.limits = limits
        self._window_of = window_of
        self._fifo: deque[tuple[int, tuple[int, int, int]]] = deque()
        self._buckets: dict[int, list[tuple[int, int, int]]] = {}
        self._requests: dict[int, Request] = {}
        self._serial = 0
        self._held_s = 0.0
        self._allowance = min(limits.lookahead_rows, 2 * limits.rows)

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def full(self) -> bool:
        """True when the look-ahead window holds all it may now.

        The window opens with two batches and doubles with each batch taken, so that a run's first
        results do not wait until a whole window has been read.
        """
        held = len(self._requests)
        enough = held >= 2 * self.limits.rows and self._held_s >= self.limits.lookahead_seconds
        return enough or held >= self._allowance

    @property
    def oldest_admitted_at(self) -> float:
        """`admitted_at` of the request that has waited longest; inf when none waits."""
        self._forget_taken()
        return self._requests[self._fifo[0][1][2]].admitted_at if self._fifo else float("inf")

    def add(self, request: Request) -> None:
        """Queue one request."""
        window = self._window_of(request)
        # Sorted by length. The serial makes it unique, so that it is found again, and leads to the request.
        key = (len(request.samples), request.key, self._serial)
        self._serial += 1
        self._requests[key[2]] = request
        self._held_s += request.duration_s
        self._fifo.append((window, key))
        insort(self._buckets.setdefault(window, []), key)

    def pop(self, most_rows: int | None = None) -> MicroBatch | None:
        """The next micro-batch, at most `most_rows` rows of it; None when nothing waits."""
        self._forget_taken()
        if not self._fifo:
            return None
        window, anchor = self._fifo[0]
        bucket = self._buckets[window]
        count = min(len(bucket), self._rows_for(window, most_rows))
        self._allowance = min(self.limits.lookahead_rows, 2 * self._allowance)
        # The slice of `count` neighbours around the anchor that keeps it near the middle.
        at = bisect_left(bucket, anchor)
        start = max(0, min(at - count // 2, len(bucket) - count))
        chosen = bucket[start : start + count]
        del bucket[start : start + count]
        if not bucket:
            del self._buckets[window]
        requests = tuple(self._requests.pop(key[2]) for key in chosen)
        self._held_s -= sum(request.duration_s for request in requests)
        return MicroBatch(requests, window)

    def _forget_taken(self) -> None:
        """Drop the heads of the queue that left in an earlier batch as somebody's neighbour."""
        while self._fifo and self._fifo[0][1][2] not in self._requests:
            self._fifo.popleft()

    def _rows_for(self, window: int, most_rows: int | None) -> int:
        rows = self.limits.rows if most_rows is None else min(self.limits.rows, most_rows)
        if self.limits.padded_seconds is not None:
            # All requests have the rate of the model.
            sample_rate = next(iter(self._requests.values())).sample_rate
            rows = min(rows, int(self.limits.padded_seconds * sample_rate / max(window, 1)))
        return max(1, rows)
