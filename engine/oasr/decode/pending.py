"""Device → host copies that are collected later, behind the next batch's forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from oasr.decode.strategy import NBest


class Readback:
    """Tensors on their way to the host: pinned buffers and one CUDA event; on a CPU, nothing to wait for."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        """Start copying `tensors`; they may be overwritten by later work on the same stream."""
        self._event: torch.cuda.Event | None = None
        self._host: list[Tensor] = []
        for tensor in tensors:
            if tensor.is_cuda:
                # Only a copy into pinned memory runs while the host goes on.
                buffer = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
                buffer.copy_(tensor, non_blocking=True)
                self._host.append(buffer)
            else:
                self._host.append(tensor)
        device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
        if device is not None:
            # An event, not the stream: work that is queued later is not waited for. On the stream of the
            # device that copies, which is not the current device's where another GPU was chosen.
            self._event = torch.cuda.Event()
            self._event.record(torch.cuda.current_stream(device))

    def wait(self) -> list[Tensor]:
        """The host tensors, complete."""
        if self._event is not None:
            self._event.synchronize()
            self._event = None
        return self._host


class PendingReadback:
    """A PendingDecode built from a Readback and a function that turns host tensors into n-bests."""

    def __init__(self, tensors: Sequence[Tensor], finish: Callable[[list[Tensor]], list[NBest]]) -> None:
        """`finish` runs on the host once the copy has landed."""
        self._readback = Readback(tensors)
        self._finish = finish

    def collect(self) -> list[NBest]:
        """Wait for the copy and return one n-best per request."""
        return self._finish(self._readback.wait())
