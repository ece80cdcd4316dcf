"""What all layers of an encoder share about the frames of one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from oasr.models.layers.mask import valid_frames


@dataclass(frozen=True, slots=True)
class Frames:
    """Lengths, masks and positions of a batch, made once a forward.

    Attributes:
        lengths: (B,) int64 valid frames, on the host.
        keep: (B, T) bool valid frames; None = every row is full.
        mask: bool, broadcastable to (B, 1, T, T), True = the key is visible; None = all are.
        positions: (T, width) sinusoids; None = the layers know no positions.
    """

    lengths: Tensor
    keep: Tensor | None
    mask: Tensor | None
    positions: Tensor | None


def frame_masks(
    lengths: Tensor, width: int, device: torch.device, chunk: int = 0
) -> tuple[Tensor | None, Tensor | None]:
    """`keep` and `mask` of `Frames`.

    Args:
        lengths: (B,) int64 valid frames, on the host.
        width: T, the frames of the batch.
        device: where the masks go.
        chunk: a frame sees nothing beyond its block of so many frames; 0 = everything.
    """
    keep = valid_frames(lengths, width, device)
    # A row without any frame still needs a key to look at: its result is never read, but a softmax
    # over nothing would be NaN.
    visible = valid_frames(lengths.clamp_min(1), width, device)
    mask = None if visible is None else visible[:, None, None]
    if chunk > 0:
        block = torch.arange(width, device=device) // chunk
        within = (block[None, :] <= block[:, None])[None, None]
        mask = within if mask is None else mask & within
    return keep, mask
