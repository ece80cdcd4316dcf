"""Multi-head attention with fused projections. Softmax runs in fp32 whatever the activation dtype."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oasr.cache.decoder_state import DecoderState
from oasr.cache.windows import DenseWindow, Window
from oasr.models.layers.linear import Linear

Triple = tuple[Tensor, Tensor, Tensor]


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Scaled dot-product attention.

    Args:
        q: (B, H, L, D) queries.
        k: (B, H, S, D) keys.
        v: (B, H, S, D) values.
        mask: broadcastable to (B, H, L, S): bool, True = the key is visible, or a bias that is added
            to the scaled scores. Every row of the mask must see at least one key.
        causal: hide keys after the query's own index (only without `mask`, and with L == S).

    Returns:
        (B, L, H·D) context, heads merged.
    """
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    return context.transpose(1, 2).flatten(2)


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax that `attend` applies to the values: (B, H, L, S) float32."""
    # Written out, because scaled_dot_product_attention does not give its weights.
    scores = (q.float() @ k.float().transpose(-1, -2)) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1)


def split_heads(x: Tensor, heads: int, parts: int) -> tuple[Tensor, ...]:
    """(B, L, parts·H·D) → `parts` tensors (B, H, L, D), views of `x`."""
    batch, length, width = x.shape
    split = x.view(batch, length, parts, heads, width // (parts * heads))
    return split.permute(2, 0, 3, 1, 4).unbind(0)


class SelfAttention(nn.Module):
    """Projections of self-attention: one fused matrix for queries, keys and values, one for the output."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = Linear(width, 3 * width)
        self.out = Linear(width, width)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, L, width) → queries, keys, values, each (B, H, L, D)."""
        q, k, v = split_heads(self.qkv(x), self.heads, 3)
        return q, k, v

    def over_prompt(self, qkv: Triple, starts: Tensor | None, mask: Tensor | None) -> Tensor:
        """Causal attention of whole prompts: (B, H, P, D) → (B, P, width).

        Args:
            qkv: queries, keys and values, each (B, H, P, D).
            starts: (B,) int64 first valid column of each left-padded row; None = none is padded.
            mask: (B, 1, P, P), what `starts` and causality make visible; None = plain causal.
        """
        return self.out(attend(*qkv, mask, causal=mask is None))

    def over_cache(self, q: Tensor, state: DecoderState, layer: int, mask: Tensor | None) -> Tensor:
        """One new token's queries (B, H, 1, D) over what `state` caches for `layer`: (B, 1, width)."""
        # This step's key is written already; `advance` counts it behind the last layer.
        end = state.width + 1
        return self.out(attend(q, state.keys[layer][:, :, :end], state.values[layer][:, :, :end], mask))

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attention of `x` (B, L, width) over itself; `mask` and `causal` as in `attend`."""
        q, k, v = self.project(x)
        return self.out(attend(q, k, v, mask, causal))


class CrossAttention(nn.Module):
    """Projections of attention over an encoder window, keys and values fused."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = Linear(width, width)
        self.kv = Linear(width, 2 * width)
        self.out = Linear(width, width)

    def project_window(self, hidden: Tensor, lengths: Tensor) -> Window:
        """Keys and values of (B, S, width) encoder output, made once a row; `lengths` (B,): valid frames."""
        k, v = split_heads(self.kv(hidden), self.heads, 2)
        # Copied out of the fused product once: every decoder step reads all of it.
        return DenseWindow(k.contiguous(), v.contiguous())

    def project_queries(self, x: Tensor) -> Tensor:
        """(B, L, width) → queries (B, H, L, D)."""
        return split_heads(self.q(x), self.heads, 1)[0]

    def weights(self, x: Tensor, window: Window, mask: Tensor | None, heads: Sequence[int]) -> Tensor:
        """The (B, len(heads), L, S) float32 softmax of `forward` in some of its heads."""
        chosen = list(heads)
        return attention_weights(self.project_queries(x)[:, chosen], _dense(window)[0][:, chosen], mask)

    def forward(
        self, x: Tensor, window: Window, mask: Tensor | None = None, starts: Tensor | None = None
    ) -> Tensor:
        """Attention of `x` (B, L, width) over a projected window; `mask` (B, 1, 1, S).

        `starts` (B,) says where left-padded rows begin. What the padding attends to is never looked at.
        """
        return self.out(attend(self.project_queries(x), *_dense(window), mask))


def _dense(window: Window) -> tuple[Tensor, Tensor]:
    if not isinstance(window, DenseWindow):
        raise TypeError(f"expected a DenseWindow, got a {type(window).__name__}")
    return window.keys, window.values
