"""Giving freed memory back to the system, which the C library does not do by itself."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

RELEASE_EVERY_S = 240.0
"""Padded audio that is encoded between two releases: one takes some 40 ms, that much audio seconds."""


class MemoryRelease:
    """Releases what is free every so many seconds of audio.

    Rows finish in any order, so that the blocks they leave lie between those of others and are not given
    back: over a long recording they add up to hundreds of megabytes.
    """

    def __init__(self) -> None:
        """Nothing has been encoded."""
        self._encoded_s = 0.0

    def before_encoding(self, padded_s: float) -> None:
        """Call before a batch of `padded_s` seconds is encoded on a CPU: it needs the most memory at once."""
        self._encoded_s += padded_s
        trim = _trim()
        if self._encoded_s >= RELEASE_EVERY_S and trim is not None:
            self._encoded_s = 0.0
            trim(0)


@lru_cache(maxsize=1)
def _trim() -> Callable[[int], int] | None:
    """The malloc_trim of glibc, which lets other threads run meanwhile; None where there is no such thing."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return None
