"""config.json of a Hugging Face network, before transformers builds from it whatever it says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oasr.errors import CheckpointError

_MOST_LAYERS = 1000
_MOST = 1 << 20
_MOST_IN_TABLES = 1 << 27
"""Numbers of a table of positions, which is computed and so has to fit no stored tensor."""
_LEFT_OUT = (
    # Another implementation of attention may be code that is fetched by its name; labels are a table of as
    # many names as the file likes.
    "_attn_implementation", "attn_implementation", "_attn_implementation_internal", "auto_map",
    "num_labels", "id2label", "label2id", "quantization_config",
)  # fmt: skip


def plain_config(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """`values` without what recognition does not need, at all depths.

    Raises:
        CheckpointError: a size that no network has, and that would take hours or gigabytes to build.
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key in _LEFT_OUT:
            continue
        most = _MOST_LAYERS if key.endswith(("layers", "layer")) else _MOST
        if isinstance(value, Mapping):
            value = plain_config(value, path)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (int, float)) and abs(one) > most:
                raise CheckpointError(f"{path}: {key}: expected at most {most}, found {one}")
        if isinstance(value, list) and len(value) > _MOST_LAYERS:
            raise CheckpointError(
                f"{path}: {key}: expected at most {_MOST_LAYERS} values, found {len(value)}"
            )
        found[key] = value
    _check_tables(found, path)
    return found


def _check_tables(values: Mapping[str, Any], path: Path) -> None:
    width = values.get("hidden_size")
    for key, value in values.items():
        numbers = isinstance(value, int) and isinstance(width, int) and "position" in key
        if numbers and value * width > _MOST_IN_TABLES:
            raise CheckpointError(
                f"{path}: {key} {value} with hidden_size {width}: expected a table of at most "
                f"{_MOST_IN_TABLES} numbers"
            )
