"""The front end of w2v-BERT 2.0 (Barrault et al. 2023): Kaldi's filter bank, normalised, frames stacked.

It computes what transformers' SeamlessM4TFeatureExtractor does, batched and on the device of the samples.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oasr.features.kaldi_fbank import FbankConfig, KaldiFbank

_LEAST_VARIANCE = 1e-7


class StackedFbank:
    """A Frontend: log-mel energies, each bin with mean 0 and variance 1 over the clip, frames in stacks.

    Frames that do not fill a stack are left out, as the original masks them.
    """

    def __init__(self, fbank: FbankConfig, stack: int = 2) -> None:
        """`stack` is at least 1."""
        self.fbank = KaldiFbank(fbank)
        self.stack = stack
        self.sample_rate = fbank.sample_rate

    def window_samples(self, n_samples: int) -> int:
        """Padded samples of a clip."""
        return self.fbank.window_samples(n_samples)

    def __call__(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) samples, (B,) lengths → (B, T, stack · n_mels), zero beyond each row, and (B,) frames."""
        features, frames = self.fbank(samples, lengths)
        for row, n in enumerate(frames.tolist()):
            if n:
                features[row, :n] = _standardised(features[row, :n])
                # Frames of a last stack that is not full; it is not counted below.
                features[row, n - n % self.stack : n] = 0.0
        stacks = features.shape[1] // self.stack
        features = features[:, : stacks * self.stack].reshape(len(features), stacks, -1)
        return features, frames.div(self.stack, rounding_mode="floor")


def _standardised(clip: Tensor) -> Tensor:
    """(T, F) → (T, F); the variance is that of a sample (n - 1), and 0 for a single frame."""
    mean = clip.mean(0)
    variance = (clip - mean).square().sum(0) / max(len(clip) - 1, 1)
    return (clip - mean) * torch.rsqrt(variance + _LEAST_VARIANCE)
