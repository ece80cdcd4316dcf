"""Attention whose weights are computed once a layer and used three times."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from oasr.models.layers.attention import split_heads
from oasr.models.layers.frames import Frames
from oasr.models.layers.linear import Linear
from oasr.models.zipformer_config import StackConfig


class AttentionWeights(nn.Module):
    """Softmax of q_i · k_j + p_i · P(j - i), unscaled: training keeps the projections small instead.

    P maps the distance of two frames, as `RelativePositions` writes it, to a few numbers a head.
    """

    def __init__(self, config: StackConfig, position_width: int) -> None:
        super().__init__()
        self.heads, self.key, self.place = config.heads, config.key, config.position
        self.project = Linear(config.width, config.heads * (2 * config.key + config.position))
        self.position = Linear(position_width, config.heads * config.position, bias=False)

    def forward(self, x: Tensor, frames: Frames) -> Tensor:
        """(B, T, width) → (B, H, T, T), over keys; softmax in float32."""
        if frames.positions is None:
            raise ValueError("these attention weights need the distances of frames")
        width = x.shape[1]
        sizes = [self.heads * size for size in (self.key, self.key, self.place)]
        q, k, p = (split_heads(part, self.heads, 1)[0] for part in self.project(x).split(sizes, -1))
        distances = split_heads(self.position(frames.positions)[None], self.heads, 1)[0]
        # (B, H, T, 2T - 1), contiguous because the view below is made from its strides.
        by_distance = (p @ distances.transpose(-1, -2)).contiguous()
        # Row i reads the columns of the distances -i … T-1-i: one to the left of what row i-1 reads.
        batch, heads, row, column = by_distance.stride()
        strides = (batch, heads, row - column, column)
        scores = q @ k.transpose(-1, -2)
        scores = scores + by_distance.as_strided(scores.shape, strides, (width - 1) * column)
        if frames.mask is not None:
            scores = scores.masked_fill(~frames.mask, -torch.inf)
        return scores.float().softmax(-1).to(x.dtype)


class WeightedValues(nn.Module):
    """Ordinary attention with given weights: values of each head, summed, projected back."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.values = Linear(config.width, config.heads * config.value)
        self.out = Linear(config.heads * config.value, config.width)

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """(B, T, width), (B, H, T, T) → (B, T, width)."""
        values = split_heads(self.values(x), self.heads, 1)[0]
        return self.out((weights @ values).transpose(1, 2).flatten(2))


class GatedValues(nn.Module):
    """The weights of one head over x · tanh(s), the sum gated by y; s, x and y are maps of the input."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.project = Linear(config.width, 3 * config.gate)
        self.out = Linear(config.gate, config.width)

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """(B, T, width), (B, T, T) → (B, T, width)."""
        squash, value, gate = self.project(x).chunk(3, -1)
        return self.out((weights @ (value * squash.tanh())) * gate)


class RelativePositions:
    """Vectors for the distances between frames, kept for each device.

    A distance d is compressed to r = sgn(d) · √w · ln(1 + |d| / √w), so that far frames differ little, and
    bent to a finite angle a = atan(2π r / w), whose first w/2 harmonics are the columns: cos a, sin a,
    cos 2a, … The last column is 1 everywhere, for a bias.
    """

    def __init__(self, width: int) -> None:
        """`width` (w) is even."""
        self.width = width
        self._tables: dict[torch.device, Tensor] = {}

    def __call__(self, count: int, like: Tensor) -> Tensor:
        """(2 · count - 1, width): distances -(count - 1) … count - 1, in the dtype of `like`."""
        table = self._tables.get(like.device)
        if table is None or len(table) < 2 * count - 1:
            # Longer than asked for, so that growing lengths do not build it anew each time.
            table = self._tables[like.device] = self._rows(max(512, 2 * count)).to(like.device)
        middle = len(table) // 2
        return table[middle - count + 1 : middle + count].to(like.dtype)

    def _rows(self, count: int) -> Tensor:
        near = math.sqrt(self.width)
        distance = torch.arange(-(count - 1), count, dtype=torch.float32)[:, None]
        far = near * distance.sign() * ((distance.abs() + near).log() - math.log(near))
        angles = (far / (self.width / (2 * math.pi))).atan() * (1 + torch.arange(self.width // 2))
        table = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)
        table[:, -1] = 1.0
        return table
