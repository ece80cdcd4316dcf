"""Samples as they are: the front end of networks whose convolutions read the waveform (wav2vec 2.0)."""

from __future__ import annotations

import torch
from torch import Tensor

from oasr.features.limits import RATES, check_sizes
from oasr.features.windows import padded_samples

_LEAST_VARIANCE = 1e-7
"""Added to the variance, as in transformers' Wav2Vec2FeatureExtractor."""


class RawWaveform:
    """A Frontend whose frames are single samples, at mean 0 and variance 1 if the checkpoint says so."""

    def __init__(self, sample_rate: int = 16000, normalize: bool = True) -> None:
        """Both are the checkpoint's."""
        check_sizes(sample_rate=(sample_rate, RATES))
        self.sample_rate = sample_rate
        self.normalize = normalize

    def window_samples(self, n_samples: int) -> int:
        """Padded samples of a clip."""
        return padded_samples(n_samples, self.sample_rate)

    def __call__(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) float32 samples, (B,) lengths → (B, N, 1) float32, zero beyond each row, and the lengths."""
        if not self.normalize:
            return samples[..., None], lengths
        out = torch.zeros_like(samples)
        # Row by row, so that neither the padding nor a neighbour has a part in a row's sums.
        for row, n in enumerate(lengths.tolist()):
            if n:
                clip = samples[row, :n]
                variance, mean = torch.var_mean(clip, correction=0)
                out[row, :n] = (clip - mean) * (variance + _LEAST_VARIANCE).rsqrt()
        return out[..., None], lengths
