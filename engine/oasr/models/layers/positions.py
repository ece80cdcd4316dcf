"""Sinusoidal positions (Vaswani et al. 2017): sine and cosine in alternate columns."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Sinusoids:
    """Rows of the position table, made when they are first needed and kept for each device."""

    def __init__(self, width: int) -> None:
        """`width` is even: half sines, half cosines."""
        self.width = width
        self._tables: dict[torch.device, Tensor] = {}

    def __call__(self, count: int, like: Tensor) -> Tensor:
        """(count, width) positions 0, 1, … on the device and in the dtype of `like`."""
        table = self._tables.get(like.device)
        if table is None or len(table) < count:
            # Longer than asked for, so that growing lengths do not build it anew each time.
            table = self._tables[like.device] = sinusoids(max(512, 2 * count), self.width).to(like.device)
        return table[:count].to(like.dtype)


def sinusoids(count: int, width: int) -> Tensor:
    """(count, width) float32.

    Angles are computed in float32: models were trained on its rounding, which at position 1000
    differs from the exact value by more than their tolerance.
    """
    rates = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * -(math.log(10000.0) / width))
    angles = torch.arange(count, dtype=torch.float32)[:, None] * rates
    table = torch.empty(count, width)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table
