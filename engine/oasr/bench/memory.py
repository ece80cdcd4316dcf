"""Peak memory of this process and of the GPU that it uses."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class PeakMemory:
    """The highest memory since this object was made.

    Attributes:
        start_bytes: what was resident then: libraries, and what an earlier run of a sweep has left behind.
        scope: "run" where the system can forget an earlier peak (Linux), else "process": the peak since
            the process began, which a later run of a sweep may have from an earlier one.
    """

    def __init__(self) -> None:
        """Forget earlier peaks, and let go of what an earlier run left."""
        _give_back()
        self.scope = "run" if _forget_peak() else "process"
        self.start_bytes = self.resident_bytes()
        for device in _cuda_devices():
            _cuda().empty_cache()
            _cuda().reset_peak_memory_stats(device)

    def resident_bytes(self) -> int:
        """Peak resident set: what the process had in memory at once, shared libraries included."""
        if self.scope == "run":
            line = next(line for line in _STATUS.read_text("utf-8").splitlines() if line.startswith("VmHWM:"))
            return int(line.split()[1]) * 1024
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Bytes on macOS, kilobytes elsewhere.
        return peak if sys.platform == "darwin" else peak * 1024

    def gpu_bytes(self, device: torch.device) -> int | None:
        """Peak of what torch's allocator held on `device`, cached blocks included; None on a CPU.

        The CUDA context and memory that libraries take by themselves come on top (some hundred MiB).
        """
        return int(_cuda().max_memory_reserved(device)) if device.type == "cuda" else None


def _give_back() -> None:
    """Return freed memory to the system, so that a large run does not count into a small one after it."""
    gc.collect()
    # glibc keeps freed heap; other C libraries have no such call, or need none.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _forget_peak() -> bool:
    """Set the kernel's high-water mark of this process to its present size (proc(5), clear_refs 5)."""
    try:
        _CLEAR.write_text("5")
        return "VmHWM:" in _STATUS.read_text("utf-8")
    except OSError:
        return False


def _cuda_devices() -> range:
    """The GPUs that this process has touched; none before torch is imported and a GPU was used."""
    used = "torch" in sys.modules and _cuda().is_initialized()
    return range(_cuda().device_count() if used else 0)


def _cuda() -> Any:
    import torch

    return torch.cuda
