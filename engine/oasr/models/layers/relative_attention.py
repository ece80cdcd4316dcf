"""Self-attention that knows positions: WeNet's `rel_selfattn` and `shaw_rel_selfattn`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oasr.models.layers.attention import attend, split_heads
from oasr.models.layers.frames import Frames
from oasr.models.layers.linear import Linear

_FARTHEST_LEFT, _FARTHEST_RIGHT = 64, 8


class KeyPositionAttention(nn.Module):
    """Transformer-XL's attention (Dai et al. 2019) without its shift, as WeNet has trained it since 2021.

    Score of query i and key j: (q_i + u) · k_j + (q_i + v) · p_j, where p_j is the projected
    position of the *key*. That equals q_i · (k_j + p_j) + (u · k_j + v · p_j): ordinary attention
    over shifted keys and one bias a key, so nothing of size T × T is ever written.

    With `shifted`, position scores are moved as in the paper's appendix B, but over T positions
    (WeNet before 2021): a key j ≤ i then has the position T - 1 - i + j.
    """

    def __init__(self, width: int, heads: int, shifted: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.shifted = shifted
        self.qkv = Linear(width, 3 * width)
        self.out = Linear(width, width)
        self.position = Linear(width, width, bias=False)
        self.content_bias = nn.Parameter(torch.empty(heads, width // heads), requires_grad=False)
        self.position_bias = nn.Parameter(torch.empty(heads, width // heads), requires_grad=False)

    def forward(self, x: Tensor, frames: Frames) -> Tensor:
        """(B, T, width) → (B, T, width)."""
        q, k, v = split_heads(self.qkv(x), self.heads, 3)
        # (B, H, T, 1): a number for each key, whatever the query.
        content = k @ self.content_bias[:, :, None]
        if frames.positions is None:
            return self.out(attend(q, k, v, self._bias(content, frames)))
        p = split_heads(self.position(frames.positions)[None], self.heads, 1)[0]
        if self.shifted:
            scores = (q + self.position_bias[:, None]) @ p.transpose(-1, -2)
            bias = content.transpose(-1, -2) + shift_scores(scores, frames.lengths.to(x.device))
            return self.out(attend(q, k, v, self._visible(bias, frames)))
        content = content + p @ self.position_bias[:, :, None]
        return self.out(attend(q, k + p, v, self._bias(content, frames)))

    def _bias(self, keys: Tensor, frames: Frames) -> Tensor:
        """(B, H, T, 1) scores of the keys → what `attend` adds."""
        return self._visible(keys.transpose(-1, -2), frames)

    def _visible(self, scores: Tensor, frames: Frames) -> Tensor:
        # `attend` scales the products of queries and keys, and adds a bias as it is.
        bias = scores * self.scale
        return bias if frames.mask is None else bias.masked_fill(~frames.mask, -torch.inf)


class ClippedDistanceAttention(nn.Module):
    """Attention with a learnt vector for each distance from 64 keys back to 8 ahead (Shaw et al. 2018)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = Linear(width, 3 * width)
        self.out = Linear(width, width)
        distances = _FARTHEST_LEFT + _FARTHEST_RIGHT + 1
        self.distance = nn.Parameter(torch.empty(distances, width // heads), requires_grad=False)

    def forward(self, x: Tensor, frames: Frames) -> Tensor:
        """(B, T, width) → (B, T, width)."""
        q, k, v = split_heads(self.qkv(x), self.heads, 3)
        index = torch.arange(x.shape[1], device=x.device)
        distance = (index[None, :] - index[:, None]).clamp(-_FARTHEST_LEFT, _FARTHEST_RIGHT) + _FARTHEST_LEFT
        scores = q @ self.distance.transpose(0, 1)
        # (B, H, T, 73) scores of distances → (B, H, T, T) of keys.
        bias = scores.gather(-1, distance.expand(*scores.shape[:2], -1, -1)) * q.shape[-1] ** -0.5
        if frames.mask is not None:
            bias = bias.masked_fill(~frames.mask, -torch.inf)
        return self.out(attend(q, k, v, bias))


def shift_scores(scores: Tensor, lengths: Tensor) -> Tensor:
    """Transformer-XL's shift of a square of scores, each row of the batch over its own length.

    The original puts a column of zeros in front, reads the L × (L + 1) numbers as one string, drops
    the first L and cuts the rest into rows of L; element (i, j) of the result is therefore number
    L + i · L + j of that string.

    Args:
        scores: (B, H, T, T).
        lengths: (B,) int64 valid frames of each row, on the same device.
    """
    batch, heads, width, _ = scores.shape
    index = torch.arange(width, device=scores.device)
    size = lengths.clamp_min(1)[:, None, None]
    place = size + index[:, None] * size + index
    row, column = place.div(size + 1, rounding_mode="floor"), place % (size + 1)
    # Column 0 is the zero in front; where the clamp put it, it is masked below.
    source = (row * width + column - 1).clamp(0, width * width - 1)
    picked = scores.flatten(2).gather(-1, source.flatten(1)[:, None].expand(-1, heads, -1))
    zero = (column == 0).view(batch, 1, width, width)
    return picked.view_as(scores).masked_fill(zero, 0.0)
