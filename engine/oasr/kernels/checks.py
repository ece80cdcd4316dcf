"""What every Python face of a kernel asks of its tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_EPSILON = 1e-5


def address(tensor: Tensor | None) -> int:
    """Where the data lies; 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


def check(
    name: str,
    tensor: Tensor,
    shape: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
    contiguous: bool = False,
) -> None:
    """Raise ValueError, naming the tensor, unless it lies on the CPU with this shape and dtype."""
    if tensor.device.type != "cpu" or tensor.dtype != dtype:
        raise ValueError(f"{name}: expected {dtype} on cpu, got {tensor.dtype} on {tensor.device}")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")
    if contiguous and not tensor.is_contiguous():
        raise ValueError(f"{name}: expected a contiguous tensor, got strides {tensor.stride()}")


def per_row(name: str, lengths: Tensor, rows: int) -> Tensor:
    """Checked int64 (rows), contiguous."""
    check(name, lengths, (rows,), torch.int64)
    return lengths.contiguous()


def layer_norm(norm: nn.LayerNorm | None, k: int) -> tuple[int, int]:
    """Addresses of gain and bias of a LayerNorm over k with an epsilon of 1e-5; zeros for None."""
    if norm is None:
        return 0, 0
    if norm.normalized_shape != (k,) or norm.eps != _EPSILON:
        raise ValueError(f"norm: expected a LayerNorm over {k} with eps 1e-5, got {norm}")
    if norm.bias is None:
        raise ValueError("norm: expected a LayerNorm with gain and bias, got one without")
    for name, tensor in (("norm.weight", norm.weight), ("norm.bias", norm.bias)):
        check(name, tensor, (k,), contiguous=True)
    return norm.weight.data_ptr(), norm.bias.data_ptr()
