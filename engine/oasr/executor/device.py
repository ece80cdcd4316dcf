"""Which device and which compute type a run uses."""

from __future__ import annotations

import torch

from oasr.errors import OptionsError
from oasr.kernels import fixed16


def choose_device(name: str) -> torch.device:
    """The torch device for "auto", "cpu", "cuda" or "cuda:N".

    Raises:
        OptionsError: not a device name, or a GPU that this machine or torch build does not have.
    """
    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise OptionsError(f"device: expected auto, cpu, cuda or cuda:N, got {name!r}")
    # Without a number: tensors lie on `cpu`, and cpu:0 does not compare equal to that.
    if device.type == "cpu":
        return torch.device("cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = device.index or 0
    if index >= count:
        found = f"{count} CUDA device(s)" if count else "no usable CUDA device"
        raise OptionsError(
            f"device: {name!r} was asked for, and torch {torch.__version__} sees {found}; use cpu or auto"
        )
    return torch.device("cuda", index)


def choose_dtype(name: str, device: torch.device) -> str:
    """The compute type for `name`; "auto" is float16 on a GPU and what suits the processor on a CPU.

    On a CPU "auto" is int16 where its kernels run (exact sums, a scale a row: no error that moves
    the WER), else bfloat16 where the processor multiplies it natively, else float32.

    Raises:
        OptionsError: a type that the device cannot run.
    """
    if name == "auto" and device.type == "cpu":
        return "int16" if fixed16.supports(device) else float_dtype()
    if name == "auto":
        return "float16"
    if name == "float16" and device.type == "cpu":
        raise OptionsError("dtype: float16 needs a GPU; on a CPU use auto, int16, float32, bfloat16 or int8")
    if name in ("int8", "int16") and device.type == "cuda":
        raise OptionsError(f"dtype: {name} runs on a CPU; on a GPU use auto, float16, bfloat16 or float32")
    if name == "int16" and not fixed16.supports(device):
        raise OptionsError("dtype: int16 needs an x86-64 processor with AVX2; use auto or float32")
    return name


def float_dtype() -> str:
    """bfloat16 where the processor multiplies it natively, else float32 (emulation is slower)."""
    # A private name of torch, which a version may drop.
    native = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return "bfloat16" if native is not None and native() else "float32"
