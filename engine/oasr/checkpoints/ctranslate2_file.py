"""Reader of CTranslate2's `model.bin` (the serialisation of its ModelSpec, binary version 6).

Little-endian: version u32, spec name, revision u32, variable count u32, the variables, alias
count u32, the aliases. A string is a u16 byte count and that many bytes, a NUL last. A variable
is name, rank u8, rank × u32 dimensions, dtype u8, byte count u32, and the bytes. An alias is two
strings: the new name and the variable it stands for.

Quantised weights carry a sibling `<name>_scale`: stored = round(weight · scale), one scale a row
of the first axis (int8) or one for all (int16).
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oasr.errors import CheckpointError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BINARY_VERSION = 6
_DTYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
_SIZES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
_MAX_RANK = 8


@dataclass(frozen=True, slots=True)
class StoredVariable:
    """Where a variable lies in the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class CTranslate2File:
    """The variables of one model.bin, read on demand."""

    def __init__(self, path: Path) -> None:
        """Index the file; raises CheckpointError for anything that is not a well-formed model.bin."""
        self.path = path
        try:
            with path.open("rb") as stream:
                self._data: mmap.mmap | bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            raise CheckpointError(f"{path}: cannot be read ({error})") from error
        cursor = _Cursor(self._data, path)
        version = cursor.number("I", "binary version")
        if version != BINARY_VERSION:
            raise CheckpointError(
                f"{path}: expected CTranslate2 binary version {BINARY_VERSION}, found {version}; "
                "convert the model again with a current CTranslate2"
            )
        self.spec = cursor.string("spec name")
        self.revision = cursor.number("I", "revision")
        self.variables = _read_variables(cursor)
        self.aliases = _read_aliases(cursor, self.variables)
        if cursor.offset != len(self._data):
            raise CheckpointError(f"{path}: {len(self._data) - cursor.offset} bytes follow the last alias")

    def scalar(self, name: str) -> int | None:
        """A stored integer without dimensions, or None when there is no such variable."""
        stored = self.variables.get(name)
        if stored is None or stored.shape or not stored.dtype.startswith("int"):
            return None
        raw = self._data[stored.offset : stored.offset + stored.nbytes]
        return int.from_bytes(raw, "little", signed=True)

    def shape(self, name: str) -> tuple[int, ...]:
        """Dimensions of a variable. Raises CheckpointError when it is absent."""
        return self._find(name).shape

    def tensor(self, name: str) -> Tensor:
        """The variable as a floating-point tensor of its own memory; integers are dequantised."""
        name = self.aliases.get(name, name)
        stored = self._find(name)
        values = self._raw(stored)
        if stored.dtype.startswith("float") or stored.dtype == "bfloat16":
            return values
        scale_of = self.variables.get(f"{name}_scale")
        if scale_of is None:
            raise CheckpointError(f"{self.path}: {name} is stored as {stored.dtype} without {name}_scale")
        scale = self._raw(scale_of).float()
        if scale.numel() not in (1, stored.shape[0]):
            raise CheckpointError(
                f"{self.path}: {name}_scale: expected 1 or {stored.shape[0]} values, found {scale.numel()}"
            )
        return values.float() / scale.reshape(-1, *[1] * (len(stored.shape) - 1))

    def _find(self, name: str) -> StoredVariable:
        stored = self.variables.get(self.aliases.get(name, name))
        if stored is None:
            raise CheckpointError(f"{self.path}: no variable {name!r}")
        return stored

    def _raw(self, stored: StoredVariable) -> Tensor:
        import torch

        # A copy: torch wants memory that it may write to.
        data = bytearray(memoryview(self._data)[stored.offset : stored.offset + stored.nbytes])
        dtype: torch.dtype = getattr(torch, stored.dtype)
        # frombuffer refuses an empty buffer.
        if not data:
            return torch.empty(stored.shape, dtype=dtype)
        return torch.frombuffer(data, dtype=dtype).reshape(stored.shape)


class _Cursor:
    """A position in the file; every read is checked against the end."""

    def __init__(self, data: mmap.mmap | bytes, path: Path) -> None:
        self.data = data
        self.path = path
        self.offset = 0

    def skip(self, count: int, what: str) -> int:
        """Step over `count` bytes; returns where they begin."""
        # Sizes come from the file, so each is checked before it is believed.
        start = self.offset
        if count > len(self.data) - start:
            raise CheckpointError(
                f"{self.path}: {what} at byte {start} needs {count} bytes, "
                f"the file has {len(self.data) - start} left; it is truncated or not a model.bin"
            )
        self.offset = start + count
        return start

    def number(self, code: str, what: str) -> int:
        start = self.skip(struct.calcsize("<" + code), what)
        return int(struct.unpack_from("<" + code, self.data, start)[0])

    def string(self, what: str) -> str:
        count = self.number("H", what)
        start = self.skip(count, what)
        raw = self.data[start : start + count]
        try:
            if raw[-1:] != b"\0":
                raise ValueError("no terminating NUL")
            return raw[:-1].decode("utf-8")
        except ValueError as error:
            raise CheckpointError(f"{self.path}: {what} at byte {start} is not a string ({error})") from error


def _read_variables(cursor: _Cursor) -> dict[str, StoredVariable]:
    variables: dict[str, StoredVariable] = {}
    for index in range(cursor.number("I", "variable count")):
        name = cursor.string(f"name of variable {index}")
        if name in variables:
            raise CheckpointError(f"{cursor.path}: variable {name!r} is stored twice")
        variables[name] = _read_variable(cursor, name)
    return variables


def _read_variable(cursor: _Cursor, name: str) -> StoredVariable:
    rank = cursor.number("B", f"rank of {name}")
    if rank > _MAX_RANK:
        raise CheckpointError(f"{cursor.path}: {name} has {rank} dimensions, expected at most {_MAX_RANK}")
    shape = tuple(cursor.number("I", f"dimensions of {name}") for _ in range(rank))
    code = cursor.number("B", f"dtype of {name}")
    if code >= len(_DTYPES):
        raise CheckpointError(f"{cursor.path}: {name} has dtype code {code}, known: 0..{len(_DTYPES) - 1}")
    nbytes = cursor.number("I", f"size of {name}")
    wanted = math.prod(shape) * _SIZES[_DTYPES[code]]
    if nbytes != wanted:
        raise CheckpointError(
            f"{cursor.path}: {name} {list(shape)} {_DTYPES[code]}: expected {wanted} bytes, found {nbytes}"
        )
    return StoredVariable(_DTYPES[code], shape, cursor.skip(nbytes, name), nbytes)


def _read_aliases(cursor: _Cursor, variables: dict[str, StoredVariable]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for index in range(cursor.number("I", "alias count")):
        alias, target = cursor.string(f"alias {index}"), cursor.string(f"target of alias {index}")
        if target not in variables:
            raise CheckpointError(
                f"{cursor.path}: alias {alias!r} stands for {target!r}, which is not stored"
            )
        aliases[alias] = target
    return aliases
