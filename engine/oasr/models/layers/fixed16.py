"""Decoder layers in 16-bit fixed point: packed linears, and cross-attention over a half-precision window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from oasr.cache.decoder_state import DecoderState
from oasr.cache.windows import RowWindows
from oasr.kernels import fixed16
from oasr.models.layers.attention import (
    CrossAttention,
    SelfAttention,
    Triple,
    attend,
    attention_weights,
    split_heads,
)
from oasr.models.layers.feed_forward import FeedForward
from oasr.models.layers.linear import Linear, replace_linears

_FEW = 8
"""Prompt tokens up to which single queries are cheaper than a float32 copy of the window."""


class Fixed16CrossAttention(nn.Module):
    """Stands in for `CrossAttention`: keys and values are float16, sums and softmax float32.

    A decoder step reads a row's whole window and does little with it, so its cost is the bytes.
    """

    def __init__(self, source: CrossAttention) -> None:
        """Pack the projections of `source`."""
        super().__init__()
        self.heads = source.heads
        self.q = fixed16.PackedLinear(source.q.weight, source.q.bias)
        self.kv = fixed16.PackedLinear(source.kv.weight, source.kv.bias)
        self.out = fixed16.PackedLinear(source.out.weight, source.out.bias)

    def project_window(self, hidden: Tensor, lengths: Tensor) -> RowWindows:
        """Float16 keys and values of (B, S, width) encoder output; row b sees `lengths[b]` frames."""
        return RowWindows.of((self.kv.window(row) for row in hidden.split(1)), lengths)

    def weights(self, x: Tensor, window: RowWindows, mask: Tensor | None, heads: Sequence[int]) -> Tensor:
        """The (B, len(heads), L, S) float32 softmax of `forward` in some of its heads."""
        chosen = list(heads)
        queries = split_heads(self.q(x), self.heads, 1)[0][:, chosen]
        return attention_weights(queries, window.whole()[0][:, chosen], mask)

    def forward(
        self, x: Tensor, window: RowWindows, mask: Tensor | None = None, starts: Tensor | None = None
    ) -> Tensor:
        """Attention of `x` (B, L, width) over projected windows; `mask` (B, 1, 1, S) hides a row's tail.

        `starts` (B,) says where left-padded rows begin; zeros stand for what lies before.
        """
        queries = self.q(x)
        rows, columns, _ = x.shape
        begins = [0] * rows if starts is None else starts.tolist()
        # By the row's own tokens, and not by the longest row's: which way it goes shows in its last bits.
        many = [b for b in range(rows) if columns - begins[b] > _FEW]
        context = torch.zeros_like(queries)
        if len(many) < rows:
            at = (window.keys, window.values, window.frames, window.lengths)
            for i in range(max(0, columns - _FEW), columns):
                context[:, i] = fixed16.attend_windows(queries[:, i], at)
        for b in many:
            keys, values = (half.float() for half in window.owners[b])
            own = split_heads(queries[b : b + 1, begins[b] :], self.heads, 1)[0]
            seen = None if mask is None else mask[b : b + 1]
            context[b, begins[b] :] = attend(own, keys, values, seen)[0]
        return self.out(context)


class Fixed16SelfAttention(nn.Module):
    """Stands in for `SelfAttention`: each row reads its own cache, so its bits do not depend on the batch."""

    def __init__(self, source: SelfAttention) -> None:
        """Pack the projections of `source`."""
        super().__init__()
        self.heads = source.heads
        self.qkv = Fixed16Linear(source.qkv)
        self.out = Fixed16Linear(source.out)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, L, width) → queries, keys, values, each (B, H, L, D)."""
        q, k, v = split_heads(self.qkv(x), self.heads, 3)
        return q, k, v

    def over_prompt(self, qkv: Triple, starts: Tensor | None, mask: Tensor | None) -> Tensor:
        """Causal attention of whole prompts (B, H, P, D) → (B, P, width); see SelfAttention."""
        # The kernel knows left padding and causality; any other mask goes the general way.
        if starts is None and mask is not None:
            return self.out(attend(*qkv, mask))
        q, k, v = qkv[0], qkv[1].contiguous(), qkv[2].contiguous()
        rows, _, columns, _ = k.shape
        # Token by token through the kernel of a step, whose bits do not depend on the batch.
        each = [
            fixed16.step_attention(q[:, :, i].flatten(1), k, v, torch.full((rows,), i + 1), starts)
            for i in range(columns)
        ]
        return self.out(torch.stack(each, dim=1))

    def over_cache(self, q: Tensor, state: DecoderState, layer: int, mask: Tensor | None) -> Tensor:
        """One token's queries (B, H, 1, D) over the cache of `layer`: (B, 1, width)."""
        # (B, H, 1, D) → (B, 1, H·D), as the kernel takes them.
        queries = q.flatten(1)[:, None]
        keys, values = state.keys[layer], state.values[layer]
        return self.out(fixed16.step_attention(queries, keys, values, state.lens + 1, state.starts))


class Fixed16Linear(nn.Module):
    """Stands in for `Linear`."""

    def __init__(self, source: Linear) -> None:
        """Pack the weights of `source`."""
        super().__init__()
        self.packed = fixed16.PackedLinear(source.weight, source.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) → (..., out)."""
        return self.packed(x)


class Fixed16FeedForward(nn.Module):
    """Stands in for `FeedForward`, the GELU inside the first product."""

    def __init__(self, source: FeedForward) -> None:
        """Pack both linears of `source`."""
        super().__init__()
        self.up = fixed16.PackedLinear(source.up.weight, source.up.bias)
        self.down = fixed16.PackedLinear(source.down.weight, source.down.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) → (..., width)."""
        return self.down(self.up(x, gelu=True))


def pack_decoder(decoder: nn.Module) -> None:
    """Replace every linear and attention under `decoder` by its fixed-point counterpart."""
    counterparts: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
        CrossAttention: Fixed16CrossAttention,
        SelfAttention: Fixed16SelfAttention,
        FeedForward: Fixed16FeedForward,
    }
    # Whole blocks first, which pack the linears inside them; then those that stand alone, like the head.
    for module in list(decoder.modules()):
        for name, child in list(module.named_children()):
            if type(child) in counterparts:
                setattr(module, name, counterparts[type(child)](child))
    replace_linears(decoder, Fixed16Linear)
