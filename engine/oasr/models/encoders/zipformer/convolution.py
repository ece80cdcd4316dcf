"""The convolution module: pointwise gate, depthwise over time, activation, pointwise."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.encoders.zipformer.basics import swoosh_r
from oasr.models.layers.frames import Frames
from oasr.models.layers.linear import Linear


class ChunkConv(nn.Module):
    """A depthwise convolution that streams: one half looks back, the other around, inside a chunk.

    Near both ends of the chunk the second one is scaled, for it sees less there. Here the chunk is the whole
    row, as with icefall's `--chunk-size -1`, and its end is the row's own and not that of the batch.
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.back = nn.Conv1d(width, width, kernel // 2 + 1, groups=width)
        self.around = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.edges = nn.Parameter(torch.empty(2, width, kernel), requires_grad=False)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(B, width, T), zero beyond (B,) lengths → (B, width, T)."""
        around = self.around(x) * self._scales(lengths.to(x.device), x.shape[-1])
        return around + self.back(F.pad(x, (self.kernel // 2, 0)))

    def _scales(self, lengths: Tensor, width: int) -> Tensor:
        """(B, channels, T): 1, and what the first and the last frames of a row add to it."""
        since = torch.arange(width, device=lengths.device)
        begin = F.pad(self.edges[0], (0, max(0, width - self.kernel)))[None, :, :width]
        # Frame L - 1 takes the last column, the one before it the last but one, and so on.
        column = since - lengths[:, None] + self.kernel
        inside = (column >= 0) & (column < self.kernel)
        end = self.edges[1][:, column.clamp(0, self.kernel - 1)].transpose(0, 1)
        return 1.0 + begin + end * inside[:, None]


class ZipformerConv(nn.Module):
    """The module, over (B, T, width)."""

    def __init__(self, width: int, kernel: int, causal: bool) -> None:
        super().__init__()
        self.expand = Linear(width, 2 * width)
        self.depthwise = (
            ChunkConv(width, kernel)
            if causal
            else nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        )
        self.project = Linear(width, width)

    def forward(self, x: Tensor, frames: Frames) -> Tensor:
        """(B, T, width) → (B, T, width); frames beyond a row are zero where the depthwise reads them."""
        x = F.glu(self.expand(x), dim=-1)
        if frames.keep is not None:
            x = x.masked_fill(~frames.keep[..., None], 0.0)
        x = x.transpose(1, 2)
        x = self.depthwise(x, frames.lengths) if isinstance(self.depthwise, ChunkConv) else self.depthwise(x)
        return self.project(swoosh_r(x.transpose(1, 2)))
