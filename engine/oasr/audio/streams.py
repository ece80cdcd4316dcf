"""What every decoder offers: blocks of samples, and a word on what it had to put up with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

BLOCK_FRAMES = 1 << 17
"""Frames handed on at a time: long recordings are never held at their native rate as a whole."""


class UnreadableError(Exception):
    """This decoder cannot make samples of the file; another one may."""


class ReadCancelledError(Exception):
    """The reader was closed while a recording was being decoded."""


class AudioStream(Protocol):
    """An opened recording.

    Attributes:
        sample_rate: Hz.
        channels: number of channels.
        total: frames of the whole recording as the container states them; None when it does not, and then
            set once `blocks` has met the end.
        warnings: damage found so far; complete when `blocks` has ended.
    """

    sample_rate: int
    channels: int
    total: int | None
    warnings: list[str]

    def blocks(self, first: int, last: int | None) -> Iterator[np.ndarray]:
        """Frames [first, last) as consecutive (n, channels) float32 blocks, n > 0.

        Ends early where the recording or what can be decoded of it ends. Called once.
        """
        ...

    def close(self) -> None:
        """Free the decoder (not the file)."""
        ...
