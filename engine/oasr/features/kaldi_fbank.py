"""Kaldi's log-mel filter bank (feat/feature-fbank.h), batched, on the device of the samples.

Each frame loses its mean, is pre-emphasised (its first sample against itself), windowed and
zero-padded to a power of two; the power spectrum goes through triangles that are straight on the
mel scale 1127 ln(1 + f/700), and the logarithm is floored at float32's epsilon. Dither is a
training aid and always off here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from oasr.features.cmvn import GlobalCmvn
from oasr.features.limits import MEL_BINS, RATES, WINDOW_SAMPLES, check_sizes
from oasr.features.windows import padded_samples

_PRE_EMPHASIS = 0.97
_FRAMES_AT_ONCE = 1 << 16
WINDOWS = ("povey", "hamming", "hanning", "blackman", "rectangular")


@dataclass(frozen=True, slots=True)
class FbankConfig:
    """What a checkpoint says about its filter bank.

    Attributes:
        high_hz: upper edge; at most 0 = so many Hz below the Nyquist frequency.
        scale: factor on samples in [-1, 1]; 32768 for models trained on 16-bit integers.
        snip_edges: True = only frames that lie inside the clip; False = one frame for each shift,
            the clip mirrored at both ends.
    """

    sample_rate: int = 16000
    n_mels: int = 80
    frame_length_ms: float = 25.0
    frame_shift_ms: float = 10.0
    window: str = "povey"
    low_hz: float = 20.0
    high_hz: float = 0.0
    scale: float = 32768.0
    snip_edges: bool = True

    def __post_init__(self) -> None:
        """Raise CheckpointError for sizes that no filter bank has."""
        check_sizes(sample_rate=(self.sample_rate, RATES), n_mels=(self.n_mels, MEL_BINS))
        check_sizes(
            frame_length=(self.frame_samples, WINDOW_SAMPLES),
            frame_shift=(self.shift_samples, WINDOW_SAMPLES),
        )

    @property
    def frame_samples(self) -> int:
        """Samples of one frame."""
        # Truncated, not rounded, as in Kaldi.
        return int(self.sample_rate * self.frame_length_ms * 0.001)

    @property
    def shift_samples(self) -> int:
        """Samples from one frame to the next."""
        return int(self.sample_rate * self.frame_shift_ms * 0.001)

    @property
    def n_fft(self) -> int:
        """The frame, rounded up to a power of two."""
        return 1 << (self.frame_samples - 1).bit_length()

    def frames_of(self, n_samples: int) -> int:
        """Frames of a clip of `n_samples`."""
        if not self.snip_edges:
            return (n_samples + self.shift_samples // 2) // self.shift_samples
        return max(0, 1 + (n_samples - self.frame_samples) // self.shift_samples)


class KaldiFbank:
    """A Frontend: padded samples → log-mel energies, normalised when the checkpoint has statistics."""

    def __init__(self, config: FbankConfig, cmvn: GlobalCmvn | None = None) -> None:
        """`cmvn` has one entry a mel bin."""
        self.config = config
        self.sample_rate = config.sample_rate
        self._cmvn = cmvn
        self._tables: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def window_samples(self, n_samples: int) -> int:
        """Padded samples of a clip."""
        return padded_samples(n_samples, self.sample_rate)

    def __call__(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Features of a batch.

        Args:
            samples: (B, N) float32, zero beyond each row's length.
            lengths: (B,) int64 samples of each row.

        Returns:
            (B, T, n_mels) float32, zero beyond each row's frames, and (B,) int64 frames, on the host.
        """
        config, clips = self.config, lengths.tolist()
        frames = [config.frames_of(n) for n in clips]
        out = samples.new_zeros((len(clips), max(config.frames_of(samples.shape[1]), 0), config.n_mels))
        # On a CPU row by row, so that a row's bits do not depend on the rows beside it.
        at_once = 1 if samples.device.type == "cpu" else max(1, _FRAMES_AT_ONCE // max(1, out.shape[1]))
        for first in range(0, len(clips), at_once):
            rows = slice(first, first + at_once)
            longest = max(frames[rows])
            if longest:
                out[rows, :longest] = self._normalised(self._pieces(samples[rows], clips[rows], longest))
        counts = torch.tensor(frames, dtype=torch.int64)
        # Row by row nothing was written beyond a row's frames.
        if at_once > 1 and min(frames, default=0) < out.shape[1]:
            index = torch.arange(out.shape[1], device=out.device)
            out.masked_fill_((index >= counts.to(out.device)[:, None])[..., None], 0.0)
        return out, counts

    def _pieces(self, samples: Tensor, clips: list[int], frames: int) -> Tensor:
        """(R, N) → (R, frames, frame_samples) overlapping pieces, a view where nothing is mirrored."""
        config = self.config
        if not config.snip_edges:
            samples = torch.stack(
                [self._mirrored(row, n, frames) for row, n in zip(samples, clips, strict=True)]
            )
        return samples.unfold(1, config.frame_samples, config.shift_samples)[:, :frames]

    def _mirrored(self, row: Tensor, n: int, frames: int) -> Tensor:
        """The first `n` samples with both ends mirrored (the end samples doubled), for `frames` frames."""
        config = self.config
        before = config.frame_samples // 2 - config.shift_samples // 2
        span = (frames - 1) * config.shift_samples + config.frame_samples
        index = torch.arange(-before, span - before, device=row.device)
        # Reflections repeat with period 2n, which also serves clips shorter than a frame.
        index = index.remainder(2 * max(n, 1))
        index = torch.minimum(index, 2 * max(n, 1) - 1 - index)
        return row[index]

    def _normalised(self, pieces: Tensor) -> Tensor:
        """(R, T, frame_samples) → (R, T, n_mels) log energies, normalised."""
        window, filters = self._on(pieces.device)
        pieces = pieces * self.config.scale
        pieces = pieces - pieces.mean(-1, keepdim=True)
        previous = torch.cat([pieces[..., :1], pieces[..., :-1]], dim=-1)
        pieces = (pieces - _PRE_EMPHASIS * previous) * window
        power = torch.fft.rfft(pieces, n=self.config.n_fft).abs().square()
        logs = (power @ filters).clamp_min_(torch.finfo(torch.float32).eps).log_()
        return logs if self._cmvn is None else self._cmvn(logs)

    def _on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The analysis window and the filters on `device`, made once."""
        if device not in self._tables:
            window, filters = analysis_window(self.config), kaldi_filters(self.config)
            self._tables[device] = window.to(device), filters.to(device)
        return self._tables[device]


def analysis_window(config: FbankConfig) -> Tensor:
    """(frame_samples,) float32: Povey's is a Hann window to the power of 0.85."""
    size = config.frame_samples
    if config.window == "povey":
        return torch.hann_window(size, periodic=False).pow(0.85)
    if config.window == "hanning":
        return torch.hann_window(size, periodic=False)
    if config.window == "hamming":
        return torch.hamming_window(size, periodic=False)
    if config.window == "blackman":
        return torch.blackman_window(size, periodic=False)
    if config.window == "rectangular":
        return torch.ones(size)
    raise ValueError(f"window {config.window!r}: expected one of {', '.join(WINDOWS)}")


def kaldi_filters(config: FbankConfig) -> Tensor:
    """(n_fft // 2 + 1, n_mels) float32 triangles of height 1; Kaldi leaves the Nyquist bin out."""
    nyquist = config.sample_rate / 2
    high = config.high_hz if config.high_hz > 0 else nyquist + config.high_hz
    low_mel, high_mel = (1127.0 * math.log(1.0 + hz / 700.0) for hz in (config.low_hz, high))
    # In float32, as Kaldi and torchaudio do: where a triangle has almost no height over a bin, the
    # rounding of the mel scale shows in the logarithm.
    step = (high_mel - low_mel) / (config.n_mels + 1)
    edges = low_mel + torch.arange(config.n_mels + 2) * step
    mels = (
        1127.0 * (1.0 + torch.arange(config.n_fft // 2) * (config.sample_rate / config.n_fft) / 700.0).log()
    )
    mels = mels[:, None]
    rising = (mels - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mels) / (edges[2:] - edges[1:-1])
    triangles = torch.minimum(rising, falling).clamp_min(0)
    return torch.nn.functional.pad(triangles, (0, 0, 0, 1))
