"""Activations by the names that checkpoints use."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from oasr.errors import CheckpointError

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "hardtanh": F.hardtanh,
    "selu": F.selu,
}


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function called `name`; CheckpointError with the known names when there is none."""
    if name not in ACTIVATIONS:
        raise CheckpointError(f"activation: expected one of {', '.join(ACTIVATIONS)}, got {name!r}")
    return ACTIVATIONS[name]
