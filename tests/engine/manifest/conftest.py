from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oasr.manifest import InputOptions, open_inputs
from oasr.types import RowFailure, Utterance

Row = Utterance | RowFailure


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """write("name", line, line, ...) → the path; dicts become JSON, bytes stay as they are."""

    def write_lines(name: str, *lines: Any, end: bytes = b"\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [line if isinstance(line, bytes) else _text(line).encode() for line in lines]
        path.write_bytes(b"".join(part + end for part in parts))
        return path

    return write_lines


@pytest.fixture
def rows(write: Callable[..., Path]) -> Callable[..., list[Row]]:
    """rows(line, ...) → what a manifest `list.jsonl` with these lines yields."""

    def read(*lines: Any, end: bytes = b"\n", **options: Any) -> list[Row]:
        return list(open_inputs([str(write("list.jsonl", *lines, end=end))], InputOptions(**options)))

    return read


@pytest.fixture
def one(rows: Callable[..., list[Row]]) -> Callable[..., Row]:
    """one(line) → the only row of a manifest with that line."""

    def read(line: Any, **options: Any) -> Row:
        (row,) = rows(line, **options)
        return row

    return read


def _text(line: Any) -> str:
    return line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
