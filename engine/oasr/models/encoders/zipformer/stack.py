"""A stack of layers, at its own frame rate."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oasr.models.encoders.zipformer.attention import RelativePositions
from oasr.models.encoders.zipformer.basics import Bypass
from oasr.models.encoders.zipformer.layer import ZipformerLayer
from oasr.models.layers.frames import Frames, frame_masks
from oasr.models.zipformer_config import StackConfig


class Downsample(nn.Module):
    """The weighted mean of each `factor` frames; the last frame of a row fills up the last group."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor
        self.bias = nn.Parameter(torch.empty(factor), requires_grad=False)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, width), (B,) valid frames → (B, ceil(T / factor), width), and (B,) valid ones."""
        width, groups = x.shape[1], -(-x.shape[1] // self.factor)
        index = torch.arange(groups * self.factor, device=x.device)
        if bool((lengths >= width).all()):
            x = x if len(index) == width else x[:, index.clamp_max(width - 1)]
        else:
            last = (lengths.to(x.device) - 1).clamp_min(0)[:, None]
            x = x.gather(1, torch.minimum(index, last)[..., None].expand(-1, -1, x.shape[2]))
        # Stored as logits: the shares of a group add up to 1.
        share = self.bias.float().softmax(0).to(x.dtype)
        out = (x.unflatten(1, (groups, self.factor)) * share[:, None]).sum(2)
        return out, (lengths + self.factor - 1).div(self.factor, rounding_mode="floor")


class ZipformerStack(nn.Module):
    """Layers; with a factor above 1 between a downsampling, an upsampling, and a bypass around all."""

    def __init__(self, config: StackConfig, position_width: int, causal: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            ZipformerLayer(config, position_width, causal) for _ in range(config.layers)
        )
        self.downsample = Downsample(config.factor) if config.factor > 1 else None
        self.bypass = Bypass(config.width) if config.factor > 1 else None

    def forward(self, x: Tensor, lengths: Tensor, positions: RelativePositions) -> Tensor:
        """(B, T, width), (B,) valid frames → (B, T, width)."""
        if self.downsample is None or self.bypass is None:
            return self._layers(x, lengths, positions)
        fewer, counts = self.downsample(x, lengths)
        inner = self._layers(fewer, counts, positions)
        # The last group may have been filled up beyond the end.
        inner = inner.repeat_interleave(self.downsample.factor, dim=1)[:, : x.shape[1]]
        return self.bypass(x, inner)

    def _layers(self, x: Tensor, lengths: Tensor, positions: RelativePositions) -> Tensor:
        keep, mask = frame_masks(lengths, x.shape[1], x.device)
        frames = Frames(lengths, keep, mask, positions(x.shape[1], x))
        for layer in self.layers:
            x = layer(x, frames)
        return x
