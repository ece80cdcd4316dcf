"""Convolutions that shorten the feature sequence before the first layer, unpadded as in WeNet.

A frame that comes out saw only frames inside its row, so padded rows need no mask here.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.layers.linear import Linear

_SHAPES: dict[str, tuple[tuple[int, int], ...]] = {
    "conv2d2": ((3, 2),),
    "conv2d": ((3, 2), (3, 2)),
    "conv2d6": ((3, 2), (5, 3)),
    "conv2d8": ((3, 2), (3, 2), (3, 2)),
}
"""Name → (kernel, stride) of each convolution, alike over time and frequency."""


def subsampling_rate(kind: str) -> int:
    """Feature frames for each frame that comes out."""
    rate = 1
    for _, stride in _SHAPES.get(kind, ()):
        rate *= stride
    return rate


class ConvSubsampling(nn.Module):
    """Convolutions with ReLU between them, then a linear map of channels × frequencies to the width."""

    def __init__(self, kind: str, n_mels: int, width: int) -> None:
        super().__init__()
        self.shapes = _SHAPES[kind]
        inputs = (1, *([width] * (len(self.shapes) - 1)))
        self.convs = nn.ModuleList(
            nn.Conv2d(channels, width, kernel, stride)
            for channels, (kernel, stride) in zip(inputs, self.shapes, strict=True)
        )
        self.out = Linear(width * self.frames_out(n_mels), width)

    def frames_out(self, frames: int) -> int:
        """What is left of `frames` (the same rule shortens the frequency axis)."""
        for kernel, stride in self.shapes:
            frames = max(0, (frames - kernel) // stride + 1)
        return frames

    def lengths_out(self, lengths: Tensor) -> Tensor:
        """`frames_out` of each of (B,) lengths."""
        for kernel, stride in self.shapes:
            lengths = ((lengths - kernel).div(stride, rounding_mode="floor") + 1).clamp_min(0)
        return lengths

    def forward(self, features: Tensor) -> Tensor:
        """(B, T, n_mels) float32 → (B, T', width) in the model's dtype."""
        x = features[:, None].to(next(self.convs.parameters()).dtype)
        for conv in self.convs:
            x = F.relu(conv(x))
        # (B, width, T', F') → (B, T', width · F').
        return self.out(x.transpose(1, 2).flatten(2))


class LinearSubsampling(nn.Module):
    """No shortening: a linear map and a normalisation of each frame."""

    def __init__(self, n_mels: int, width: int) -> None:
        super().__init__()
        self.out = Linear(n_mels, width)
        self.norm = nn.LayerNorm(width, eps=1e-5)

    def lengths_out(self, lengths: Tensor) -> Tensor:
        """The same lengths."""
        return lengths

    def forward(self, features: Tensor) -> Tensor:
        """(B, T, n_mels) float32 → (B, T, width) in the model's dtype."""
        return self.norm(self.out(features.to(self.norm.weight.dtype)))


def build_subsampling(kind: str, n_mels: int, width: int) -> ConvSubsampling | LinearSubsampling:
    """The module that `kind` (an `input_layer` of train.yaml) names."""
    return LinearSubsampling(n_mels, width) if kind == "linear" else ConvSubsampling(kind, n_mels, width)
