"""Mean and variance normalisation with statistics of a whole training corpus."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_LEAST_VARIANCE = 1e-20


class GlobalCmvn:
    """x → (x - mean) / deviation, bin by bin, in float32 whatever the model computes in."""

    def __init__(self, mean: Tensor, inverse_deviation: Tensor) -> None:
        """Both (F,), on any device and of any floating type."""
        if mean.shape != inverse_deviation.shape or mean.ndim != 1:
            shapes = f"{list(mean.shape)} and {list(inverse_deviation.shape)}"
            raise ValueError(f"expected two vectors of one size, got {shapes}")
        self._tables = {torch.device("cpu"): (mean.float().cpu(), inverse_deviation.float().cpu())}

    @classmethod
    def from_sums(cls, sums: Sequence[float], squares: Sequence[float], count: float) -> GlobalCmvn:
        """From the sum and the sum of squares of each bin over `count` frames (Kaldi's statistics).

        A variance below 1e-20 counts as 1e-20, as in WeNet, so that a constant bin stays finite.
        """
        # In double: a small variance is the difference of two large numbers.
        mean = torch.tensor(sums, dtype=torch.float64) / count
        variance = torch.tensor(squares, dtype=torch.float64) / count - mean.square()
        return cls(mean, variance.clamp_min(_LEAST_VARIANCE).rsqrt())

    @property
    def bins(self) -> int:
        """F."""
        return len(self._tables[torch.device("cpu")][0])

    def __call__(self, features: Tensor) -> Tensor:
        """(..., F) float32 → (..., F) float32."""
        if features.device not in self._tables:
            mean, inverse = self._tables[torch.device("cpu")]
            self._tables[features.device] = mean.to(features.device), inverse.to(features.device)
        mean, inverse = self._tables[features.device]
        return (features - mean) * inverse
