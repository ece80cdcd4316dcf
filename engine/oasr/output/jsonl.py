r"""One JSON object a line: the only place where result rows become bytes and bytes become rows.

RFC 8259 JSON in UTF-8 with nothing escaped that need not be. What JSON cannot carry is made to fit
and never raises: NaN and infinities become null, and a lone surrogate (an undecodable byte of a file
name) becomes its `\udcXX` escape, which reads back as the same string.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any


def encode_line(row: Mapping[str, Any]) -> bytes:
    """`row` as one line of UTF-8 JSON with its newline; keys keep their order."""
    return encode_value(row) + b"\n"


def encode_value(value: Any) -> bytes:
    """`value` as UTF-8 JSON on one line."""
    try:
        # Nearly every row can be written as it is; only one that cannot is copied.
        text = _dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = _dumps(_plain(value, ()))
    return text.encode("utf-8", "backslashreplace")


def decode_line(line: bytes) -> dict[str, Any]:
    """The object on one line.

    Raises:
        ValueError: not UTF-8, not JSON, or not an object; the message says which.
    """
    try:
        value = json.loads(line.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {type(value).__name__}")
    return value


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _plain(value: Any, parents: tuple[int, ...]) -> Any:
    """`value` in types that JSON has; a container inside itself becomes null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if id(value) in parents or len(parents) > 200:
        return None
    inside = (*parents, id(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item, inside) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, inside) for item in value]
    if hasattr(value, "tolist"):  # numpy scalars and arrays, torch tensors
        return _plain(value.tolist(), inside)
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)
