"""Whisper's audio encoder: two convolutions, fixed positions, a pre-norm Transformer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.layers.attention import SelfAttention
from oasr.models.layers.feed_forward import FeedForward
from oasr.models.layers.mask import valid_frames
from oasr.models.whisper_config import WhisperDims


class WhisperEncoderLayer(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, dims: WhisperDims) -> None:
        super().__init__()
        self.attn_norm = nn.LayerNorm(dims.width)
        self.attn = SelfAttention(dims.width, dims.encoder_heads)
        self.ffn_norm = nn.LayerNorm(dims.width)
        self.ffn = FeedForward(dims.width, dims.encoder_ffn)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T, width) → (B, T, width); `mask` (B, 1, 1, T) hides padded keys."""
        x = x + self.attn(self.attn_norm(x), mask)
        return x + self.ffn(self.ffn_norm(x))


class WhisperEncoder(nn.Module):
    """Log-mel frames → hidden states at half the frame rate."""

    def __init__(self, dims: WhisperDims) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(dims.n_mels, dims.width, 3, padding=1)
        self.conv2 = nn.Conv1d(dims.width, dims.width, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.empty(dims.encoder_positions, dims.width), requires_grad=False)
        self.layers = nn.ModuleList(WhisperEncoderLayer(dims) for _ in range(dims.encoder_layers))
        self.norm = nn.LayerNorm(dims.width)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode a window.

        Args:
            features: (B, T, n_mels), T even and at most twice the position table. A T below
                that uses the first T/2 positions, as if the model had been given a short window.
            lengths: (B,) int64 frames of each row's own window, on the host; what lies beyond is
                padding of the batch and does not touch the row's result.

        Returns:
            (B, T/2, width) hidden states and (B,) their valid lengths.
        """
        frames = features.shape[1]
        if frames % 2 or not 0 < frames <= 2 * self.positions.shape[0]:
            raise ValueError(
                f"window of {frames} frames: expected an even number up to {2 * self.positions.shape[0]}"
            )
        # (B, n_mels, T) for the convolutions, which give (B, T/2, width).
        x = features.to(self.conv1.weight.dtype).transpose(1, 2)
        keep = valid_frames(lengths, frames, x.device)
        x = F.gelu(self.conv1(_blank(x, keep)))
        # Blanked again: the first convolution has left its bias beyond the ends of rows.
        x = F.gelu(self.conv2(_blank(x, keep))).transpose(1, 2)
        x = x + self.positions[: frames // 2]
        lengths = (lengths + 1) // 2
        valid = valid_frames(lengths, frames // 2, x.device)
        mask = None if valid is None else valid[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x), lengths


def _blank(x: Tensor, keep: Tensor | None) -> Tensor:
    """Zero the padded frames of (B, C, T), which is what a convolution sees past a row's end."""
    return x if keep is None else x * keep[:, None]
