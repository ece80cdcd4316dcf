"""The Conformer's convolution module (Gulati et al. 2020, section 2.2), over (B, T, width)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.conformer_config import ConvConfig
from oasr.models.layers.activation import activation
from oasr.models.layers.linear import Linear


class ConvModule(nn.Module):
    """Pointwise, gate, depthwise over time, norm, activation, pointwise.

    A norm over batch statistics is an affine map once training is over; checkpoint readers fold it
    into the depthwise convolution, so it has no module here.
    """

    def __init__(self, width: int, config: ConvConfig, activation_name: str) -> None:
        super().__init__()
        self.expand = Linear(width, 2 * width)
        self.depthwise = nn.Conv1d(width, width, config.kernel, groups=width)
        self.norm = nn.LayerNorm(width, eps=config.norm_eps) if config.layer_norm else None
        self.project = Linear(width, width)
        self.causal = config.causal
        self.context = config.kernel - 1
        self.activation = activation(activation_name)

    def forward(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """(B, T, width) → (B, T, width); `keep` (B, T) bool marks valid frames, None = all are.

        Frames outside a row are zero where the depthwise convolution reads them. Before the first
        frame of a causal one they are what the gate makes of a zero input, because WeNet pads
        before the first pointwise map: its bias shows.
        """
        x = F.glu(self.expand(x), dim=-1)
        # A causal convolution never looks behind the end of a row: nothing has to be masked.
        if self.causal:
            first = self._before(x).expand(len(x), self.context, -1)
            x = torch.cat([first, x], dim=1).transpose(1, 2)
        else:
            if keep is not None:
                x = x * keep[..., None]
            x = F.pad(x.transpose(1, 2), (self.context // 2, self.context // 2))
        x = self.depthwise(x).transpose(1, 2)
        if self.norm is not None:
            x = self.norm(x)
        return self.project(self.activation(x))

    def _before(self, x: Tensor) -> Tensor:
        """(1, 1, width): the gate's output for a frame of zeros."""
        zero = x.new_zeros((1, 1, x.shape[-1]))
        return F.glu(self.expand(zero), dim=-1)
