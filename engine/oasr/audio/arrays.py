"""Samples that the caller already holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oasr.audio.streams import BLOCK_FRAMES
from oasr.errors import AudioError
from oasr.types import Utterance

# More is an array of (channels, frames), which would be read as a moment of very many channels.
_MOST_CHANNELS = 256
_INTEGER_SCALE = {"int16": (0.0, 1 / 2**15), "int32": (0.0, 1 / 2**31), "uint8": (128.0, 1 / 2**7)}


class ArrayStream:
    """AudioStream over an array of shape (frames,) or (frames, channels).

    Floats are taken as they are (full scale 1); int16, int32 and uint8 are PCM and are scaled.
    """

    def __init__(self, utterance: Utterance) -> None:
        """Check the array of `utterance`; AudioError says what cannot be used."""
        samples, rate = np.asarray(utterance.samples), utterance.sample_rate
        if isinstance(rate, bool) or not isinstance(rate, (int, np.integer)) or rate <= 0:
            raise AudioError(f"sample_rate: expected Hz as an integer > 0 beside the samples, got {rate!r}")
        if samples.dtype.kind != "f" and samples.dtype.name not in _INTEGER_SCALE:
            known = ", ".join(_INTEGER_SCALE)
            raise AudioError(f"samples: expected floats or {known}, got an array of {samples.dtype.name}")
        if samples.ndim not in (1, 2) or (samples.ndim == 2 and not 1 <= samples.shape[1] <= _MOST_CHANNELS):
            raise AudioError(
                "samples: expected shape (frames,) or (frames, channels) "
                f"with at most {_MOST_CHANNELS} channels, got {samples.shape}"
            )
        self._samples = samples[:, None] if samples.ndim == 1 else samples
        self.sample_rate = int(rate)
        self.total, self.channels = self._samples.shape
        self.warnings: list[str] = []

    def blocks(self, first: int, last: int | None) -> Iterator[np.ndarray]:
        """See AudioStream."""
        zero, scale = _INTEGER_SCALE.get(self._samples.dtype.name, (0.0, 1.0))
        end = self.total if last is None else min(last, self.total)
        for start in range(first, end, BLOCK_FRAMES):
            block = self._samples[start : min(end, start + BLOCK_FRAMES)].astype(np.float32)
            yield block if scale == 1.0 else (block - np.float32(zero)) * np.float32(scale)

    def close(self) -> None:
        """Nothing to free."""
