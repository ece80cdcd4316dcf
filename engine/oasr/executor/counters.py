"""What the executor counts about a run: time shares, batches, padding, rescues."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from oasr.executor.batching import MicroBatch
from oasr.executor.spans import DeviceSpans

if TYPE_CHECKING:
    import torch

STATIONS = ("read", "collate_wait", "features", "encoder", "decode", "readback", "output")
"""Where the time of the engine's own thread goes, in the order of a run."""
_ON_DEVICE = ("features", "encoder", "decode")


@dataclass(slots=True)
class Counters:
    """Running totals of one executor.

    Attributes:
        seconds: station → time of the engine's own thread: computing, launching or waiting. `read` is
            waiting for the reader threads, `collate_wait` for the padded batch, `readback` for results
            on their way to the host.
        device_seconds: station → time of the CUDA stream, filled by `snapshot` after `measure_device`.
        reader_seconds: time of all reader threads together, which runs beside the stations.
        useful_samples, padded_samples: of every encoder forward, repeated ones included.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    device_seconds: dict[str, float] = field(default_factory=dict)
    reader_seconds: float = 0.0
    batches: int = 0
    rows: int = 0
    steps: int = 0
    useful_samples: int = 0
    padded_samples: int = 0
    oom_splits: int = 0
    isolated: int = 0
    redecoded: int = 0
    _spans: DeviceSpans | None = field(default=None, repr=False, compare=False)

    def measure_device(self, device: torch.device) -> None:
        """From now on also measure a CUDA device by events; on a CPU the host's time says it all."""
        if device.type == "cuda":
            self._spans = DeviceSpans.on(device)

    @contextmanager
    def time(self, station: str) -> Iterator[None]:
        """Add the duration of the block to `station`; one block a batch, a tick or a recording."""
        spans = self._spans if station in _ON_DEVICE else None
        begin = None if spans is None else spans.mark()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(station, time.perf_counter() - start)
        # A block that raised leaves no span: the device itself may be what failed.
        if spans is not None and begin is not None:
            spans.close(station, begin)

    def add(self, station: str, seconds: float) -> None:
        """Add time that was measured elsewhere."""
        self.seconds[station] = self.seconds.get(station, 0.0) + seconds

    def count_batch(self, batch: MicroBatch) -> None:
        """Count one encoder forward."""
        self.batches += 1
        self.rows += len(batch.requests)
        self.useful_samples += sum(len(r.samples) for r in batch.requests)
        self.padded_samples += batch.window_samples * len(batch.requests)

    @property
    def padding_share(self) -> float | None:
        """Part of the samples in encoder forwards that was padding, in [0, 1]; None before the first."""
        return 1 - self.useful_samples / self.padded_samples if self.padded_samples else None

    def snapshot(self) -> Counters:
        """The totals as they are now; waits for what the device has been given to do."""
        if self._spans is not None:
            self.device_seconds = self._spans.collect()
        return replace(
            self, seconds=dict(self.seconds), device_seconds=dict(self.device_seconds), _spans=None
        )

    def since(self, earlier: Counters) -> Counters:
        """What was counted between two snapshots, this one being the later."""
        return self.plus(earlier, -1)

    def plus(self, other: Counters, sign: int = 1) -> Counters:
        """The sum of both, or with `sign` -1 the difference."""
        total = Counters()
        for name in (f.name for f in fields(self) if not f.name.startswith("_")):
            mine, its = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                both = {key: mine.get(key, 0.0) + sign * its.get(key, 0.0) for key in {**mine, **its}}
                setattr(total, name, both)
            else:
                setattr(total, name, mine + sign * its)
        return total
