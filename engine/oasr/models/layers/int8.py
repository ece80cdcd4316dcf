"""Linear layers with 8-bit weights, one scale per output row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oasr.models.layers.linear import Linear, replace_linears


class Int8Linear(nn.Module):
    """y = (x · Qᵀ) · scale + b with Q int8: a quarter of the memory, activations untouched.

    Only weights are rounded, so a row's result does not depend on the rows beside it (a scale
    shared by the activations of a whole batch would make it so).
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, source: Linear) -> None:
        """Round the weights of `source`: each row to the nearest of 255 steps of its largest value."""
        super().__init__()
        weight = source.weight.detach()
        largest = weight.float().abs().amax(1)
        # A row of zeros has no largest value to divide by.
        scale = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
        self.register_buffer("weight", (weight.float() / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale.to(weight.dtype))
        self.register_buffer("bias", None if source.bias is None else source.bias.detach())

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) → (..., out)."""
        y = F.linear(x, self.weight.to(x.dtype)) * self.scale
        return y if self.bias is None else y + self.bias


def use_int8(model: nn.Module) -> int:
    """Give all linear layers of `model` 8-bit weights, in place; returns how many were changed.

    A layer whose weight another module shares (an output head tied to the embedding) keeps it.
    """
    owners: dict[int, int] = {}
    for module in model.modules():
        # `parameters()` would give a shared one only once.
        for parameter in module._parameters.values():
            owners[id(parameter)] = owners.get(id(parameter), 0) + 1
    return replace_linears(model, lambda layer: Int8Linear(layer) if owners[id(layer.weight)] == 1 else None)
