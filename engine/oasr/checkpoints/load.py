"""From a resolved checkpoint to a model ready to run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oasr.checkpoints.contents import require_float
from oasr.checkpoints.detect import FORMATS
from oasr.checkpoints.resolve import resolve
from oasr.errors import CheckpointError, OptionsError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from oasr.checkpoints.contents import CheckpointContents
    from oasr.models.interfaces import AsrModel

logger = logging.getLogger(__name__)

# Integer weights are made from float32 ones, once those are in place.
_STORED_AS = {
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "int16": "float32",
    "int8": "float32",
}
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of every tensor.

    Attributes:
        mapped: parameters filled from the checkpoint.
        missing: stored names or parameters that the checkpoint lacks.
        unexpected: stored names that nothing used.
    """

    mapped: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


def load_model(spec: str, device: torch.device, dtype: str) -> AsrModel:
    """Find, check, read and build a model.

    Args:
        spec: catalog name, folder, file or hub id.
        device: where its weights go.
        dtype: float32, bfloat16, float16, int16 (fixed point on a CPU), or int8 (8-bit weights,
            float32 activations).

    Returns:
        The model in evaluation mode, without gradients; `load_report` and `checkpoint` tell
        where it came from.

    Raises:
        CheckpointError: not found, not verified, malformed, or tensors are missing.
        OptionsError: an unknown dtype.
    """
    import torch

    from oasr.models import ARCHITECTURES

    if dtype not in _STORED_AS:
        raise OptionsError(f"dtype: expected one of {', '.join(_STORED_AS)}, got {dtype!r}")
    checkpoint = resolve(spec)
    contents = FORMATS.get(checkpoint.format)().read(checkpoint)
    architecture = ARCHITECTURES.get(contents.architecture)
    # Without memory and without drawing numbers that `fill` would replace.
    with torch.device("meta"):
        model: AsrModel = architecture(contents.config, contents.tokenizer)  # type: ignore[call-arg]
    report = fill(model, contents, device, getattr(torch, _STORED_AS[dtype]))
    model.load_report = report  # type: ignore[assignment]
    model.checkpoint = checkpoint  # type: ignore[assignment]
    if report.unexpected:
        names = ", ".join(report.unexpected[:_SHOWN])
        logger.warning("%s: %d tensors are not used: %s", spec, len(report.unexpected), names)
    if dtype == "int8":
        from oasr.models.layers.int8 import use_int8

        if not use_int8(model):
            raise OptionsError(f"dtype int8: a {model.architecture} model has no 8-bit path; use float32")
    if dtype == "int16":
        model.use_fixed16()
    return model.eval().requires_grad_(False)


def fill(
    model: nn.Module, contents: CheckpointContents, device: torch.device, dtype: torch.dtype
) -> LoadReport:
    """Give each parameter and stored buffer of `model` its tensor, one at a time, on `device` and as `dtype`.

    Buffers that are not stored (tables that the model computed) move to `device`.

    Raises:
        CheckpointError: a parameter without a tensor, or a tensor of another shape or of no floats.
    """
    owners = _owners(model)
    absent = [name for name in owners if name not in contents.tensors]
    if absent:
        # By the names of the file where they are known: those a user can look for.
        lacking = [*contents.missing] or absent
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        raise CheckpointError(
            f"the checkpoint lacks {len(lacking)} tensors that a {contents.architecture} model needs: "
            f"{', '.join(lacking[:_SHOWN])}{more}"
        )
    for name, places in owners.items():
        value = _checked(name, places[0], contents.tensors).to(device, dtype)
        _place(places, value)
    for module in model.modules():
        for attribute, buffer in module.named_buffers(recurse=False):
            setattr(module, attribute, buffer.to(device))
    return LoadReport(tuple(owners), contents.missing, contents.unexpected)


def _owners(model: nn.Module) -> dict[str, list[tuple[nn.Module, str]]]:
    """Parameter or stored buffer → every (module, attribute) that holds it; tied ones appear once."""
    first: dict[int, str] = {id(p): name for name, p in model.named_parameters()}
    owners: dict[str, list[tuple[nn.Module, str]]] = {name: [] for name in first.values()}
    for prefix, module in model.named_modules():
        # Duplicates too: each place of a tied weight gets the new parameter, or the tie would break.
        for attribute, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            owners[first[id(parameter)]].append((module, attribute))
        for attribute, _ in module.named_buffers(recurse=False):
            if attribute not in module._non_persistent_buffers_set:
                owners[f"{prefix}.{attribute}".removeprefix(".")] = [(module, attribute)]
    return owners


def _checked(name: str, place: tuple[nn.Module, str], tensors: Mapping[str, Callable[[], Tensor]]) -> Tensor:
    value, wanted = tensors[name](), getattr(*place)
    # Before the shape: packed weights have another one. A buffer that counts is no weight.
    if wanted.is_floating_point():
        require_float(name, value)
    if value.shape != wanted.shape:
        raise CheckpointError(
            f"tensor for {name}: expected shape {list(wanted.shape)}, found {list(value.shape)}; "
            "the configuration and the weights do not belong together"
        )
    return value


def _place(places: list[tuple[nn.Module, str]], value: Tensor) -> None:
    from torch import nn

    parameter = nn.Parameter(value, requires_grad=False)
    for module, attribute in places:
        setattr(module, attribute, value if attribute in module._buffers else parameter)
