"""Whisper's log-mel features (Radford et al. 2022, section 2.2 and the released front end)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oasr.features.mel import slaney_filters

_N_FFT = 400
_HOP = 160
_FLOOR = 1e-10
_DYNAMIC_RANGE = 8.0


class WhisperLogMel:
    """Padded 16 kHz samples → log10 mel energies, 100 frames a second, scaled to about [-1, 1].

    Every row is clamped to 8 decades (of power) below its own maximum, over its own window, so a
    row never depends on its neighbours. Frames beyond the clip but inside its window are silence
    that the model was trained to see: they count as frames.
    """

    sample_rate = 16000

    def __init__(self, n_mels: int = 80, window_s: float = 30.0) -> None:
        """`n_mels` and `window_s` are the checkpoint's."""
        self.n_mels = n_mels
        self.full_window = round(window_s * self.sample_rate)
        self._tables: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def window_samples(self, n_samples: int) -> int:
        """Padded samples of a clip: always the whole window (30 s)."""
        return self.full_window

    def __call__(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `extract`. On a CPU row by row, so that a row's bits do not depend on the rows beside it."""
        if samples.device.type != "cpu" or len(samples) <= 1:
            return self.extract(samples, lengths)
        rows = [self.extract(samples[i : i + 1], lengths[i : i + 1]) for i in range(len(samples))]
        return torch.cat([features for features, _ in rows]), torch.cat([frames for _, frames in rows])

    def extract(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Features of a batch whose rows share one window.

        Args:
            samples: (B, N) float32 at 16 kHz, N a multiple of 320: the window of every row.
            lengths: (B,) int64 real samples of each row, on the host; the rest counts as silence.

        Returns:
            (B, N / 160, n_mels) float32 features and (B,) int64 frames, N / 160 for every row.
        """
        batch, n = samples.shape
        if n % (2 * _HOP) or n < 2 * _N_FFT:
            raise ValueError(
                f"window of {n} samples: expected a multiple of {2 * _HOP}, at least {2 * _N_FFT}"
            )
        frames = n // _HOP
        window, filters = self._on(samples.device)
        longest = int(lengths.max()) if batch else 0
        if bool((lengths < longest).any()) or longest < n:
            index = torch.arange(n, device=samples.device)
            samples = samples.masked_fill(index >= lengths.to(samples.device)[:, None], 0.0)
        # A frame reaches 200 samples past its centre: later frames of the longest row are silence,
        # whose energy is the floor, and need no transform.
        heard = min(frames, (longest + _N_FFT // 2 - 1) // _HOP + 1)
        energies = self._energies(samples, heard, window) @ filters
        logs = energies.clamp_min_(_FLOOR).log10_()
        floor = logs.amax((1, 2), keepdim=True) - _DYNAMIC_RANGE
        out = logs.new_full((batch, frames, self.n_mels), math.log10(_FLOOR))
        out[:, :heard] = logs
        out = torch.maximum(out, floor).add_(4.0).div_(4.0)
        return out, torch.full((batch,), frames, dtype=torch.int64)

    def _energies(self, samples: Tensor, heard: int, window: Tensor) -> Tensor:
        """(B, N) → (B, heard, 201) power spectrum of centred frames, both ends mirrored."""
        half = _N_FFT // 2
        span = heard * _HOP + half
        # Cut behind the last frame wanted, which does not reach what is mirrored there.
        if span + half <= samples.shape[1]:
            samples = samples[:, : span + half]
        mirrored = torch.nn.functional.pad(samples[:, None], (half, half), mode="reflect")[:, 0]
        pieces = mirrored.unfold(1, _N_FFT, _HOP)[:, :heard]
        return torch.view_as_real(torch.fft.rfft(pieces * window)).square().sum(-1)

    def _on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The analysis window and the filters on `device`, made once."""
        if device not in self._tables:
            window = torch.hann_window(_N_FFT, periodic=True, device=device)
            filters = slaney_filters(self.n_mels, _N_FFT, self.sample_rate).to(device)
            self._tables[device] = window, filters
        return self._tables[device]
