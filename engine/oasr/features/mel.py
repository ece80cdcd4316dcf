"""Mel filter banks on the Slaney scale (Auditory Toolbox, 1998; librosa's default)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# The scale is linear (200/3 Hz a mel) up to 1 kHz and logarithmic above, 27 mels per factor 6.4.
_HZ_PER_MEL = 200.0 / 3
_BREAK_HZ = 1000.0
_BREAK_MEL = _BREAK_HZ / _HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27


def hz_to_mel(hz: float) -> float:
    """Slaney mel of a frequency."""
    if hz < _BREAK_HZ:
        return hz / _HZ_PER_MEL
    return _BREAK_MEL + math.log(hz / _BREAK_HZ) / _LOG_STEP


def mel_to_hz(mel: Tensor) -> Tensor:
    """Frequencies of Slaney mels."""
    above = _BREAK_HZ * torch.exp(_LOG_STEP * (mel - _BREAK_MEL))
    return torch.where(mel < _BREAK_MEL, mel * _HZ_PER_MEL, above)


def slaney_filters(n_mels: int, n_fft: int, sample_rate: int) -> Tensor:
    """Triangular filters of unit area from 0 Hz to Nyquist: (n_fft // 2 + 1, n_mels) float32."""
    nyquist = sample_rate / 2
    bins = torch.linspace(0, nyquist, n_fft // 2 + 1, dtype=torch.float64)
    edges = mel_to_hz(torch.linspace(hz_to_mel(0.0), hz_to_mel(nyquist), n_mels + 2, dtype=torch.float64))
    low, peak, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (bins[:, None] - low) / (peak - low)
    falling = (high - bins[:, None]) / (high - peak)
    triangles = torch.minimum(rising, falling).clamp_min(0)
    return (triangles * (2 / (high - low))).float()
