"""One layer of a Conformer (Gulati et al. 2020), or of a plain Transformer, with either norm placement."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from oasr.models.conformer_config import EncoderConfig
from oasr.models.layers.activation import activation
from oasr.models.layers.attention import SelfAttention
from oasr.models.layers.conv_module import ConvModule
from oasr.models.layers.feed_forward import FeedForward
from oasr.models.layers.frames import Frames
from oasr.models.layers.relative_attention import ClippedDistanceAttention, KeyPositionAttention

Block = Callable[[Tensor], Tensor]


class PlainAttention(SelfAttention):
    """`SelfAttention` under the interface of the attentions that know positions."""

    def forward(self, x: Tensor, frames: Frames) -> Tensor:  # type: ignore[override]
        """(B, T, width) → (B, T, width)."""
        return super().forward(x, frames.mask)


def build_attention(config: EncoderConfig) -> nn.Module:
    """The self-attention that `config.attention` names."""
    if config.attention == "rel_selfattn":
        return KeyPositionAttention(config.width, config.heads, config.rel_shift)
    if config.attention == "shaw_rel_selfattn":
        return ClippedDistanceAttention(config.width, config.heads)
    return PlainAttention(config.width, config.heads)


class ConformerLayer(nn.Module):
    """Half a feed-forward, attention, convolution, the other half; what `config` leaves out is None."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        act = activation(config.activation)
        self.pre_norm = config.pre_norm
        self.ffn_scale = 0.5 if config.macaron else 1.0
        self.macaron_norm = _norm(config) if config.macaron else None
        self.macaron = FeedForward(config.width, config.ffn, act) if config.macaron else None
        self.attn_norm = _norm(config)
        self.attn = build_attention(config)
        self.conv_norm = _norm(config) if config.conv else None
        self.conv = ConvModule(config.width, config.conv, config.activation) if config.conv else None
        self.ffn_norm = _norm(config)
        self.ffn = FeedForward(config.width, config.ffn, act)
        # Only layers with a convolution close with a norm of their own.
        self.out_norm = _norm(config) if config.conv else None

    def forward(self, x: Tensor, frames: Frames) -> Tensor:
        """(B, T, width) → (B, T, width)."""
        if self.macaron is not None and self.macaron_norm is not None:
            x = self._residual(x, self.macaron_norm, self.macaron, self.ffn_scale)
        x = self._residual(x, self.attn_norm, lambda y: self.attn(y, frames))
        if self.conv is not None and self.conv_norm is not None:
            # A local name, since type checkers forget in a lambda that the attribute is not None.
            conv = self.conv
            x = self._residual(x, self.conv_norm, lambda y: conv(y, frames.keep))
        x = self._residual(x, self.ffn_norm, self.ffn, self.ffn_scale)
        return x if self.out_norm is None else self.out_norm(x)

    def _residual(self, x: Tensor, norm: nn.Module, block: Block, scale: float = 1.0) -> Tensor:
        inner = block(norm(x) if self.pre_norm else x)
        summed = x + (inner if scale == 1.0 else scale * inner)
        return summed if self.pre_norm else norm(summed)


def _norm(config: EncoderConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.width, eps=config.norm_eps)
