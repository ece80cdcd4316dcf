"""Position-wise feed-forward block."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.layers.linear import Linear


class FeedForward(nn.Module):
    """down(activation(up(x))), by default with the exact (erf) GELU."""

    def __init__(self, width: int, inner: int, activation: Callable[[Tensor], Tensor] = F.gelu) -> None:
        super().__init__()
        self.up = Linear(width, inner)
        self.down = Linear(inner, width)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) → (..., width)."""
        return self.down(self.activation(self.up(x)))
