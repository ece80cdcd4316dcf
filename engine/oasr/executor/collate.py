"""Requests → one padded batch on the model's device, prepared while the previous batch computes."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oasr.executor.batching import MicroBatch


@dataclass(slots=True)
class Collated:
    """A micro-batch in device memory.

    Attributes:
        batch: the requests, row by row.
        samples: (B, window) float32, zero-padded, on the device; None once they have been taken.
        lengths: (B,) int64 valid samples, on the host, where frames are counted without waiting for
            the device.
        ready: CUDA event behind the copies, None on a CPU.
    """

    batch: MicroBatch
    samples: Tensor | None
    lengths: Tensor
    ready: torch.cuda.Event | None = None

    def take(self) -> Tensor:
        """The samples, which the current stream waits for; whoever takes them decides how long they stay.

        A batch of 16 windows of 30 s is 31 MB, and nobody needs it once there are features.
        """
        samples, self.samples = self.samples, None
        if samples is None:
            raise RuntimeError("the samples of a batch can be taken once")
        if self.ready is not None:
            stream = torch.cuda.current_stream(samples.device)
            stream.wait_event(self.ready)
            # The copying stream owns the memory, and would give it out again while this one still reads.
            samples.record_stream(stream)
        return samples


class Collator:
    """Pads and copies the next micro-batch on a thread of its own (and a stream, on a GPU)."""

    def __init__(self, device: torch.device) -> None:
        """One worker: batches are collated in the order they are submitted."""
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="oasr-collate")

    def submit(self, batch: MicroBatch) -> Future[Collated]:
        """Start collating `batch`."""
        return self._pool.submit(self.collate, batch)

    def collate(self, batch: MicroBatch) -> Collated:
        """Collate `batch` now."""
        rows = len(batch.requests)
        pinned = self._stream is not None
        host = torch.zeros((rows, batch.window_samples), dtype=torch.float32, pin_memory=pinned)
        view = host.numpy()
        for row, request in enumerate(batch.requests):
            count = min(len(request.samples), batch.window_samples)
            np.copyto(view[row, :count], request.samples[:count])
        lengths = torch.tensor([len(r.samples) for r in batch.requests], dtype=torch.int64)
        if self._stream is None:
            return Collated(batch, host, lengths)
        with torch.cuda.stream(self._stream):
            samples = host.to(self._device, non_blocking=True)
            ready = torch.cuda.Event()
            ready.record(self._stream)
        # The pinned source must outlive the copy; the collate thread can afford to wait for it.
        ready.synchronize()
        return Collated(batch, samples, lengths, ready)

    def close(self) -> None:
        """Stop the worker thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)
