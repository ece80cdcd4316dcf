"""Position-wise feed-forward block."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.layers.linear import Linear


class FeedForward(nn.Module):
    """down(gelu(up(x))) with the exact (erf) GELU."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.up = Linear(width, inner)
        self.down = Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) → (..., width)."""
        return self.down(F.gelu(self.up(x)))
