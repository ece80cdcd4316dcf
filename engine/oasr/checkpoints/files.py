"""Small reads that every format needs, with errors that name the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

    from oasr.tokenizers.base import Tokenizer


def read_json(path: Path, required: bool = True) -> dict[str, Any]:
    """A JSON object from `path`; {} when it is absent and not required."""
    if not required and not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def integer(config: dict[str, Any], key: str, path: Path) -> int:
    """A positive integer of a configuration file."""
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CheckpointError(f"{path}: {key}: expected an integer > 0, found {value!r}")
    return value


def folder_of(path: Path) -> Path:
    """The folder of a checkpoint given as a folder or as a file in it."""
    return path if path.is_dir() else path.parent


def require_tokenizer(folder: Path) -> Tokenizer:
    """The Hugging Face tokenizer in `folder`; CheckpointError when there is none."""
    from oasr.tokenizers.huggingface import HuggingFaceTokenizer

    tokenizer = HuggingFaceTokenizer.from_folder(folder)
    if tokenizer is None:
        raise CheckpointError(
            f"{folder}: no tokenizer found (looked for tokenizer.json, or vocab.json with merges.txt); "
            "copy tokenizer.json of the original model beside the weights"
        )
    return tokenizer


def load_torch(path: Path) -> Any:
    """What a `torch.save` file holds. Only tensors and plain containers are accepted, never code.

    Raises:
        CheckpointError: unreadable, something else than plain tensors, or sizes that the file does not have.
    """
    import zipfile

    import torch

    from oasr.checkpoints.torch_claims import check_claims

    try:
        check_claims(path)
        # Files of before torch 1.6 are no zip archives and cannot be mapped.
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except CheckpointError:
        raise
    except Exception as error:  # a damaged pickle raises errors of any type
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise CheckpointError(
            f"{path}: not a readable PyTorch file of plain tensors ({reason[0]})"
        ) from error


def tensors_of(stored: Any, path: Path) -> dict[str, Tensor]:
    """The tensors among the values of a mapping that `load_torch` returned, by name.

    Raises:
        CheckpointError: no mapping, or a tensor that is none of plain numbers in memory, or that is larger
            than what it was stored with (a view that repeats values, which would be copied out in full).
    """
    import torch

    if not isinstance(stored, Mapping):
        raise CheckpointError(f"{path}: expected named tensors, found {type(stored).__name__}")
    found = {str(name): value for name, value in stored.items() if isinstance(value, torch.Tensor)}
    for name, value in found.items():
        plain = value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized
        if not plain or value.nbytes > value.untyped_storage().nbytes():
            raise CheckpointError(
                f"{path}: {name}: expected a plain tensor, found shape {list(value.shape)} with "
                f"{value.layout} on {value.device} that the file does not hold; save its state_dict again"
            )
    return found
