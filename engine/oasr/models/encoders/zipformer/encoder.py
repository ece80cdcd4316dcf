"""The whole encoder: subsampling, stacks at several frame rates and widths, a last halving."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.encoders.zipformer.attention import RelativePositions
from oasr.models.encoders.zipformer.stack import Downsample, ZipformerStack
from oasr.models.encoders.zipformer.subsampling import ZipformerSubsampling
from oasr.models.zipformer_config import ZipformerConfig

RATE = 4
"""Feature frames for each frame that comes out."""


class ZipformerEncoder(nn.Module):
    """Features → hidden states. A row's result does not depend on the padding behind it."""

    def __init__(self, config: ZipformerConfig) -> None:
        super().__init__()
        self.config = config
        self.subsampling = ZipformerSubsampling(config)
        self.stacks = nn.ModuleList(
            ZipformerStack(stack, config.position_width, config.causal) for stack in config.stacks
        )
        self.halve = Downsample(2)
        self.positions = RelativePositions(config.position_width)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode a batch.

        Args:
            features: (B, T, n_mels) float32.
            lengths: (B,) int64 valid frames of each row, on the host.

        Returns:
            (B, T', width) hidden states and (B,) their valid lengths, on the host; a row of under 9 frames
            has none.
        """
        # Too short for the convolutions, which torch then refuses to run.
        if features.shape[1] < 9:
            hidden = features.new_zeros((len(features), 0, self.config.width), dtype=self.halve.bias.dtype)
            return hidden, torch.zeros_like(lengths)
        x, lengths = self.subsampling(features, lengths)
        outputs: list[Tensor] = []
        for stack, config in zip(self.stacks, self.config.stacks, strict=True):
            # A wider stack starts with zeros in its further channels, a narrower one leaves some out.
            x = F.pad(x, (0, config.width - x.shape[2]))
            outputs.append(stack(x, lengths, self.positions))
            x = outputs[-1]
        hidden, lengths = self.halve(_latest(outputs), lengths)
        return hidden, lengths


def _latest(outputs: Sequence[Tensor]) -> Tensor:
    """Each channel from the last stack that has it."""
    latest = outputs[-1]
    for output in reversed(outputs[:-1]):
        latest = torch.cat([latest, output[..., latest.shape[-1] :]], dim=-1)
    return latest
