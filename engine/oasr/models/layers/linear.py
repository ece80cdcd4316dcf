"""The one linear layer of all architectures, so that its arithmetic can change in one place."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Module):
    """y = x · Wᵀ + b, with weight (out, in) and an optional bias (out,).

    Same parameter names and shapes as `nn.Linear`, but no initialisation: weights always come
    from a checkpoint. A faster arithmetic replaces instances of this class in a built model
    (`replace_linears`), so callers only ever use `forward`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(out_features), requires_grad=False) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) → (..., out)."""
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Shape, for `print(model)`."""
        return f"{self.in_features} → {self.out_features}, bias={self.bias is not None}"


def replace_linears(model: nn.Module, make: Callable[[Linear], nn.Module | None]) -> int:
    """Swap every `Linear` under `model` for what `make` returns (None keeps it); returns how many."""
    swapped = 0
    # A list, since the tree changes while it is walked.
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            new = make(child) if type(child) is Linear else None
            if new is not None:
                setattr(module, name, new)
                swapped += 1
    return swapped
