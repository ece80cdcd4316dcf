"""What a `torch.save` file says about itself, checked against its size before torch acts on it.

`weights_only=True` keeps code from running, but it believes sizes: a pickle of a hundred bytes can ask for
storages of terabytes, call a constructor that allocates, or build a key that takes years to hash, and a
compressed member of an archive can unpack to a thousand times the file. Here the pickle's opcodes (Python's
pickle format, as `pickletools` documents it) are followed with stand-ins for everything, so that nothing is
built; only the opcodes that torch itself accepts are known.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from oasr.errors import CheckpointError

_OPCODES = (
    "GLOBAL", "NEWOBJ", "REDUCE", "BUILD", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "MARK", "TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3", "NONE", "NEWFALSE", "NEWTRUE", "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT",
    "EMPTY_SET", "BININT", "BININT1", "BININT2", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING", "BINPERSID",
    "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT", "LONG1", "PROTO", "STOP",
)  # fmt: skip
_BYTES = {
    "DoubleStorage": 8, "LongStorage": 8, "ComplexFloatStorage": 8, "ComplexDoubleStorage": 16,
    "FloatStorage": 4, "IntStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "ShortStorage": 2,
}  # fmt: skip
"""Bytes of an element; 1 for all other storages."""
_MOST_LEAVES = 100_000
_PICKLES_BEFORE_DATA = 5
"""Of a file of before torch 1.6: magic number, protocol, system, the object, the keys of its storages."""


def check_claims(path: Path) -> None:
    """Refuse a file that asks for more than it holds.

    Raises:
        CheckpointError: a storage, a member of the archive or a value that is larger than the whole file, or
            an opcode or class that plain tensors do not need.
        OSError, Exception: the file cannot be read, or is malformed in one of the ways that pickles can be.
    """
    size = path.stat().st_size
    if not zipfile.is_zipfile(path):
        with path.open("rb") as stream:
            bounded = _Bounded(stream, size)
            for _ in range(_PICKLES_BEFORE_DATA):
                _Follower(bounded, path, size).load()
        return
    with zipfile.ZipFile(path) as archive:
        # torch stores members as they are, so together they are smaller than the file.
        promised = sum(member.file_size for member in archive.infolist())
        if promised > size:
            raise CheckpointError(
                f"{path}: expected an archive as torch.save writes it, found members of {promised} bytes in "
                f"a file of {size}; save the tensors again with torch.save"
            )
        for member in archive.infolist():
            if member.filename.endswith("/data.pkl"):
                data = archive.read(member)
                _Follower(_Bounded(io.BytesIO(data), len(data)), path, size).load()


class _StandIn:
    """Whatever a pickle names or makes."""

    def __init__(self, name: str = "") -> None:
        self.name = name


class _Tuple(tuple[Any, ...]):
    """A tuple that knows how many values it holds at all depths, shared ones counted each time."""

    leaves: int

    @classmethod
    def of(cls, values: Sequence[Any]) -> _Tuple:
        made = cls(values)
        # Hashing and printing visit every value once for each way to it.
        made.leaves = sum(value.leaves if isinstance(value, cls) else 1 for value in values)
        if made.leaves > _MOST_LEAVES:
            raise pickle.UnpicklingError(f"a tuple of {made.leaves} values")
        return made


class _Bounded:
    """A stream that refuses to read past its end instead of making room for it."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._size = stream, size

    def read(self, count: int) -> bytes:
        if count > self._size - self._stream.tell():
            raise EOFError(f"{count} bytes are promised, the file ends before that")
        return self._stream.read(count)

    def readline(self) -> bytes:
        return self._stream.readline(1 << 16)


class _Follower(pickle._Unpickler):
    """Follows one pickle of `path`, which is `size` bytes long."""

    dispatch: dict[int, Callable[[Any], None]]  # type: ignore[misc]

    def __init__(self, stream: _Bounded, path: Path, size: int) -> None:
        super().__init__(stream)  # type: ignore[arg-type]
        self._path, self._limit = path, size

    def find_class(self, module: str, name: str) -> Any:
        if name in ("bytearray", "UntypedStorage", "TypedStorage") or name.endswith("Tensor"):
            raise CheckpointError(
                f"{self._path}: it makes a {module}.{name} when it is loaded, which named tensors do not "
                "need; save their state_dict"
            )
        return _StandIn(name)

    def persistent_load(self, pid: Any) -> Any:
        """A storage: ("storage", its class, key, device, number of elements, …)."""
        kind, count = pid[1], pid[4]
        wanted = count * _BYTES.get(kind.name, 1)
        if not 0 <= wanted <= self._limit:
            raise CheckpointError(
                f"{self._path}: expected storages that fit into the file of {self._limit} bytes, found a "
                f"{kind.name} of {count} elements; the file is damaged"
            )
        return _StandIn()

    def _make(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        stack.pop()
        stack[-1] = _StandIn()

    def _drop(self) -> None:
        self.stack.pop()  # type: ignore[attr-defined]

    def _drop_pair(self) -> None:
        del self.stack[-2:]  # type: ignore[attr-defined]

    def _drop_marked(self) -> None:
        self.pop_mark()  # type: ignore[attr-defined]

    def _tuple(self) -> None:
        values = self.pop_mark()  # type: ignore[attr-defined]
        self.stack.append(_Tuple.of(values))  # type: ignore[attr-defined]

    def _tuple_of(self, count: int) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        stack[-count:] = [_Tuple.of(stack[-count:])]


def _dispatch() -> dict[int, Callable[[Any], None]]:
    known = {code: pickle._Unpickler.dispatch[code] for code in (getattr(pickle, n)[0] for n in _OPCODES)}
    ours: dict[str, Callable[[Any], None]] = {
        "REDUCE": _Follower._make, "NEWOBJ": _Follower._make, "BUILD": _Follower._drop,
        "APPEND": _Follower._drop, "APPENDS": _Follower._drop_marked,
        "SETITEM": _Follower._drop_pair, "SETITEMS": _Follower._drop_marked,
        "TUPLE": _Follower._tuple, "TUPLE1": lambda self: self._tuple_of(1),
        "TUPLE2": lambda self: self._tuple_of(2), "TUPLE3": lambda self: self._tuple_of(3),
    }  # fmt: skip
    return {**known, **{getattr(pickle, name)[0]: handler for name, handler in ours.items()}}


_Follower.dispatch = _dispatch()
