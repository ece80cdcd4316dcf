"""Masks over padded rows. True means valid."""

from __future__ import annotations

import torch
from torch import Tensor


def valid_frames(lengths: Tensor, width: int, device: torch.device) -> Tensor | None:
    """(B, width) bool mask of the frames below `lengths` (B,), or None when every row is full.

    `lengths` stays on the host (EncoderOutput's contract), so asking whether a mask is needed
    costs no device synchronisation.
    """
    if bool((lengths >= width).all()):
        return None
    return torch.arange(width, device=device) < lengths.to(device)[:, None]
