"""Sample-rate conversion with soxr (HQ: linear phase, pass band to 0.91 of Nyquist, stop band below 20 bits).

torchaudio's resampler would do too, but it runs on torch's intra-op pool, which every reader thread would
wake while the engine computes on it. soxr is single-threaded, releases the GIL and works on a stream, so a
long recording is never held at its native rate.
"""

from __future__ import annotations

import numpy as np
import soxr

_QUALITY = "HQ"


class Resampler:
    """Streaming conversion of (n, channels) float32 blocks; no time shift, level kept.

    The whole output has round(n * target_rate / sample_rate) frames for n input frames, at least 1.
    """

    def __init__(self, sample_rate: int, target_rate: int, channels: int) -> None:
        """Rates in Hz; equal rates pass the samples through untouched."""
        self._stream = None
        if sample_rate != target_rate:
            self._stream = soxr.ResampleStream(
                sample_rate, target_rate, channels, dtype="float32", quality=_QUALITY
            )
        self._channels = channels
        self._out: list[np.ndarray] = []
        self._taken = False
        self._last = np.zeros((1, channels), np.float32)

    def add(self, block: np.ndarray) -> None:
        """Take (n, channels) float32, n > 0."""
        self._last = block[-1:]
        if self._stream is None:
            self._out.append(block)
        else:
            self._out.append(self._stream.resample_chunk(np.ascontiguousarray(block)))

    def take(self) -> np.ndarray:
        """The (frames, channels) that are converted by now, which `finish` then leaves out."""
        samples = np.concatenate(self._out) if self._out else self._last[:0]
        self._out = []
        self._taken = self._taken or len(samples) > 0
        return samples

    def finish(self) -> np.ndarray:
        """(frames, channels) float32 at the target rate: the rest. Call once, after the last block."""
        if self._stream is not None:
            tail = np.zeros((0, self._channels), np.float32)
            self._out.append(self._stream.resample_chunk(tail, last=True))
        samples = np.concatenate(self._out) if self._out else self._last[:0]
        self._out = []
        # A clip of one or two samples at 48 kHz rounds to nothing at 16 kHz, yet it has been recorded.
        return samples if len(samples) or self._taken else self._last.copy()


def resample(samples: np.ndarray, sample_rate: int, target_rate: int) -> np.ndarray:
    """(frames,) or (frames, channels) float32 at `target_rate`, in the shape it came in."""
    planes = samples[:, None] if samples.ndim == 1 else samples
    if not len(planes):
        return samples
    converter = Resampler(sample_rate, target_rate, planes.shape[1])
    converter.add(planes.astype(np.float32, copy=False))
    out = converter.finish()
    return out[:, 0] if samples.ndim == 1 else out
