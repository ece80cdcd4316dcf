"""Whisper's encoder in 16-bit fixed point: the same network, its hot path in `kernels.fixed16`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oasr.kernels import fixed16
from oasr.models.encoders.whisper import WhisperEncoder, WhisperEncoderLayer

# A core. Rows are independent here and a window alone keeps a core busy, so a batch goes in parts: the
# activations of a whole batch would be the peak of the process and grow with --batch-size.
_FRAMES_AT_ONCE = 3000


class Fixed16EncoderLayer(nn.Module):
    """One pre-norm layer whose activations are updated in place."""

    def __init__(self, source: WhisperEncoderLayer) -> None:
        """Pack the weights of `source`; its norms are shared."""
        super().__init__()
        self.heads = source.attn.heads
        self.attn_norm: nn.LayerNorm = source.attn_norm
        self.ffn_norm: nn.LayerNorm = source.ffn_norm
        self.qkv = fixed16.PackedLinear(source.attn.qkv.weight, source.attn.qkv.bias)
        self.out = fixed16.PackedLinear(source.attn.out.weight, source.attn.out.bias)
        self.up = fixed16.PackedLinear(source.ffn.up.weight, source.ffn.up.bias)
        self.down = fixed16.PackedLinear(source.ffn.down.weight, source.ffn.down.bias)

    def forward(self, x: Tensor, lengths: Tensor | None) -> None:
        """Update (B, T, width) float32 `x`; row b attends to its first `lengths[b]` frames."""
        qkv = self.qkv(x, norm=self.attn_norm)
        self.out(fixed16.self_attention(qkv, self.heads, lengths), add_to=x)
        fixed16.feed_forward(x, self.ffn_norm, self.up, self.down)


class Fixed16WhisperEncoder(nn.Module):
    """Stands in for a float32 `WhisperEncoder`, with its signature."""

    def __init__(self, source: WhisperEncoder) -> None:
        """Pack `source`, whose float weights may be dropped afterwards."""
        super().__init__()
        self.positions, self.norm = source.positions, source.norm
        self.conv1 = fixed16.pack_conv1d(source.conv1)
        self.conv2 = fixed16.pack_conv1d(source.conv2)
        self.layers = nn.ModuleList(
            Fixed16EncoderLayer(layer)  # type: ignore[arg-type]
            for layer in source.layers
        )

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, n_mels), (B,) host lengths → (B, T/2, width) float32 and lengths; see WhisperEncoder."""
        frames = features.shape[1]
        if frames % 2 or not 0 < frames <= 2 * self.positions.shape[0]:
            raise ValueError(
                f"window of {frames} frames: expected an even number up to {2 * self.positions.shape[0]}"
            )
        width = self.norm.normalized_shape[0]
        hidden = torch.empty(len(features), frames // 2, width, dtype=torch.float32)
        at_once = max(1, _FRAMES_AT_ONCE * torch.get_num_threads() // frames)
        for i in range(0, len(features), at_once):
            part = slice(i, i + at_once)
            hidden[part] = self._encode(features[part].float(), lengths[part])
        return hidden, (lengths + 1) // 2

    def _encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, n_mels), (B,) → (B, T/2, width) for rows that are encoded together."""
        frames = x.shape[1]
        whole = bool((lengths >= frames).all())
        x = fixed16.conv1d_gelu(x if whole else _blank(x, lengths), self.conv1)
        x = fixed16.conv1d_gelu(x if whole else _blank(x, lengths), self.conv2, stride=2)
        x += self.positions[: frames // 2]
        halved = None if whole else (lengths + 1) // 2
        for layer in self.layers:
            layer(x, halved)
        return self.norm(x)


def _blank(x: Tensor, lengths: Tensor) -> Tensor:
    """(B, T, C) with the frames past each row's length at zero."""
    index = torch.arange(x.shape[1])
    return x * (index < lengths.cpu()[:, None])[:, :, None]
