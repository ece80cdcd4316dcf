"""What the kernels compute, in double precision and as few lines as possible."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear(x: Tensor, layer: nn.Linear, norm: nn.LayerNorm | None = None, gelu: bool = False) -> Tensor:
    x = x.double()
    if norm is not None:
        x = F.layer_norm(x, x.shape[-1:], norm.weight.double(), norm.bias.double(), norm.eps)
    y = F.linear(x, layer.weight.double(), None if layer.bias is None else layer.bias.double())
    return F.gelu(y) if gelu else y


def feed_forward(x: Tensor, norm: nn.LayerNorm, up: nn.Linear, down: nn.Linear) -> Tensor:
    return x.double() + linear(linear(x, up, norm, gelu=True), down)


def conv1d_gelu(x: Tensor, conv: nn.Conv1d, stride: int) -> Tensor:
    """(B, T, C) → (B, T', n)."""
    y = F.conv1d(x.double().transpose(1, 2), conv.weight.double(), conv.bias.double(), stride, padding=1)
    return F.gelu(y).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries (L, D) over keys and values (S, D); zeros where S is 0."""
    if len(k) == 0:
        return torch.zeros_like(q, dtype=torch.float64)
    return (q.double() @ k.double().T * q.shape[-1] ** -0.5).softmax(-1) @ v.double()


def self_attention(qkv: Tensor, heads: int, lengths: list[int] | None = None) -> Tensor:
    """(B, T, 3·H·D) → (B, T, H·D)."""
    batch, frames, width = qkv.shape
    q, k, v = qkv.view(batch, frames, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
    ends = [frames] * batch if lengths is None else lengths
    rows = [
        torch.stack([attend(q[b, h], k[b, h, :end], v[b, h, :end]) for h in range(heads)], 1)
        for b, end in enumerate(ends)
    ]
    return torch.stack(rows).flatten(2)


def step_attention(q: Tensor, keys: Tensor, values: Tensor, starts: list[int], ends: list[int]) -> Tensor:
    """One query a row: q (B, H·D) over (B, H, S, D)."""
    batch, heads, _, size = keys.shape
    q = q.view(batch, heads, 1, size)
    rows = [
        torch.cat([attend(q[b, h], keys[b, h, s:e], values[b, h, s:e]) for h in range(heads)], -1)
        for b, (s, e) in enumerate(zip(starts, ends, strict=True))
    ]
    return torch.cat(rows)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Root mean square of the difference over that of the expected values."""
    expected = expected.double()
    return float((found.double() - expected).norm() / expected.norm().clamp_min(1e-300))
