"""What the executor counts about a run: time shares, batches, padding, rescues."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from oasr.executor.batching import MicroBatch


@dataclass(slots=True)
class Counters:
    """Running totals of one executor; `seconds` maps a station to host time spent in it.

    On a GPU a station's time is what the host spent launching it or waiting for it.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    batches: int = 0
    rows: int = 0
    steps: int = 0
    useful_samples: int = 0
    padded_samples: int = 0
    oom_splits: int = 0
    isolated: int = 0
    redecoded: int = 0

    @contextmanager
    def time(self, station: str) -> Iterator[None]:
        """Add the duration of the block to `station`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[station] = self.seconds.get(station, 0.0) + time.perf_counter() - start

    def count_batch(self, batch: MicroBatch) -> None:
        """Count one encoder forward."""
        self.batches += 1
        self.rows += len(batch.requests)
        self.useful_samples += sum(len(r.samples) for r in batch.requests)
        self.padded_samples += batch.window_samples * len(batch.requests)
