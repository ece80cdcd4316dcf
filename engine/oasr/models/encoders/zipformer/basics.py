"""The small parts: activations, the norm, and the bypass around a block."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def swoosh_l(x: Tensor) -> Tensor:
    """log(1 + e^(x - 4)) - 0.08 x - 0.035: of the feed-forward modules, "normally off"."""
    return F.softplus(x - 4.0).sub_(x, alpha=0.08).sub_(0.035)


def swoosh_r(x: Tensor) -> Tensor:
    """log(1 + e^(x - 1)) - 0.08 x - 0.313261687, which is 0 at 0: of the convolutions."""
    return F.softplus(x - 1.0).sub_(x, alpha=0.08).sub_(0.313261687)


class BiasNorm(nn.Module):
    """x · e^scale / rms(x - bias): the bias enters the size that is divided by, and not the result."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.empty(width), requires_grad=False)
        self.log_scale = nn.Parameter(torch.empty(()), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) → (..., width), the mean in float32."""
        power = (x - self.bias).float().square().mean(-1, keepdim=True)
        return x * (power.rsqrt() * self.log_scale.float().exp()).to(x.dtype)


class Bypass(nn.Module):
    """A mix of what went into a block and what came out, with a share for each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.empty(width), requires_grad=False)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """Both (..., width): before + (after - before) · share."""
        return torch.lerp(before, after, self.share)
