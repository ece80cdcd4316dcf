"""What a checkpoint format hands over: an architecture, its configuration, its tensors by our names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from oasr.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

Recipe = Mapping[str, tuple["str | None", ...]]
"""Our parameter name → stored names, joined along the first axis; None = zeros like the first part."""


@dataclass(frozen=True, slots=True)
class ResolvedCheckpoint:
    """A checkpoint on this machine whose format is known.

    Attributes:
        path: its folder, or its one file.
        format: name in the format registry.
        name: what the user called it.
        files: role → file, for messages and `oasr models show`.
        tokenizer_path: folder or file that holds the tokenizer; None = the format needs none or
            finds one elsewhere.
    """

    path: Path
    format: str
    name: str
    files: Mapping[str, Path] = field(default_factory=dict)
    tokenizer_path: Path | None = None


@dataclass(frozen=True, slots=True)
class CheckpointContents:
    """Everything needed to build and fill a model.

    Attributes:
        tensors: our parameter name → function that reads it (in its stored dtype).
        missing: stored names that the architecture needs and the checkpoint lacks.
        unexpected: stored names that nothing uses.
    """

    architecture: str
    config: Any
    tokenizer: Any
    tensors: Mapping[str, Callable[[], Tensor]]
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


class CheckpointFormat(Protocol):
    """One way of storing a model on disk.

    Attributes:
        looks_for: what identifies the format, in words, for messages.
    """

    looks_for: str

    def specificity(self, path: Path) -> int:
        """How surely `path` (a folder or a file) is of this format; 0 = it is not.

        10 = the files are where the format puts them; 20 = a file that only this format has;
        30 = a value inside a file says so.
        """
        ...

    def files(self, path: Path) -> Mapping[str, Path]:
        """Role → file of a checkpoint of this format."""
        ...

    def read(self, checkpoint: ResolvedCheckpoint) -> CheckpointContents:
        """Read it. Raises CheckpointError for anything malformed."""
        ...


def require_float(name: str, value: Tensor) -> Tensor:
    """`value`, the tensor for `name`, as a parameter may be stored.

    Raises:
        CheckpointError: integers and 8-bit floats, which are weights only together with scales beside them.
    """
    import torch

    if value.dtype not in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        raise CheckpointError(
            f"tensor for {name}: expected float32, float16, bfloat16 or float64, found "
            f"{str(value.dtype).removeprefix('torch.')}; quantised weights cannot be read, use the model "
            "that they were made from"
        )
    return value


def gather(
    recipe: Recipe, stored: Iterable[str], read: Callable[[str], Tensor], known_extra: Iterable[str] = ()
) -> dict[str, Any]:
    """The `tensors`, `missing` and `unexpected` of CheckpointContents.

    Args:
        recipe: what each parameter is made of.
        stored: names in the checkpoint.
        read: reads one stored tensor.
        known_extra: stored names that are left out on purpose (tied weights, sizes).
    """
    names = set(stored)
    wanted = {part for parts in recipe.values() for part in parts if part is not None}
    tensors = {
        name: _joined(parts, read)
        for name, parts in recipe.items()
        if all(part is None or part in names for part in parts)
    }
    return {
        "tensors": tensors,
        "missing": tuple(sorted(wanted - names)),
        "unexpected": tuple(sorted(names - wanted - set(known_extra))),
    }


def _joined(parts: tuple[str | None, ...], read: Callable[[str], Tensor]) -> Callable[[], Tensor]:
    # Read when it is placed: of a mapped file one tensor at a time is in memory beside the model.
    def load() -> Tensor:
        import torch

        if len(parts) == 1 and parts[0] is not None:
            return read(parts[0])
        # Joined with a float one, an integer part would pass for floats.
        found = [None if part is None else require_float(part, read(part)) for part in parts]
        first = next(x for x in found if x is not None)
        return torch.cat([torch.zeros_like(first) if x is None else x for x in found])

    return load
