"""The encoder of U2 and U2++: subsampling, positions, Conformer or Transformer layers.

Whole recordings are encoded with full context, streaming (causal, dynamic-chunk) checkpoints
included: that is their best mode, and what WeNet does offline.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from oasr.models.conformer_config import EncoderConfig
from oasr.models.encoders.conformer_layer import ConformerLayer
from oasr.models.layers.frames import Frames, frame_masks
from oasr.models.layers.positions import Sinusoids
from oasr.models.layers.subsampling import build_subsampling


class ConformerEncoder(nn.Module):
    """Features → hidden states. A row's result does not depend on the padding behind it."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.subsampling = build_subsampling(config.subsampling, config.n_mels, config.width)
        self.layers = nn.ModuleList(ConformerLayer(config) for _ in range(config.layers))
        final = config.pre_norm and config.final_norm
        self.norm = nn.LayerNorm(config.width, eps=config.norm_eps) if final else None
        self.sinusoids = None if config.positions == "no_pos" else Sinusoids(config.width)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode a batch.

        Args:
            features: (B, T, n_mels), at least as long as the subsampling needs for one frame.
            lengths: (B,) int64 valid frames of each row, on the host.

        Returns:
            (B, T', width) hidden states and (B,) their valid lengths, on the host.
        """
        x = self.subsampling(features)
        lengths = self.subsampling.lengths_out(lengths)
        keep, mask = frame_masks(lengths, x.shape[1], x.device, self.config.static_chunk)
        positions = None
        if self.sinusoids is not None:
            positions = self.sinusoids(x.shape[1], x)
            # The input outgrows the positions, whose largest value is 1, as in the original Transformer.
            x = x * math.sqrt(self.config.width)
            x = x + positions if self.config.positions == "abs_pos" else x
        frames = Frames(lengths, keep, mask, positions)
        for layer in self.layers:
            x = layer(x, frames)
        return (x if self.norm is None else self.norm(x)), lengths
