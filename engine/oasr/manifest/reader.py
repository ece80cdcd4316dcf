"""What one input offers to the list, and the error record that every kind of input writes alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Protocol

from oasr.errors import ManifestRowError
from oasr.types import RowFailure, Utterance


class Reader(Protocol):
    """One input. An entry is a row before it is looked at, so that skipping one is cheap.

    Attributes:
        name: short name of the file that holds the rows; part of the ids of unreadable rows.
        long_name: the same with its folder, for lists in which two inputs share the short name.
        path: what the user called the input.
        paths: every file or folder that the input stands for by itself (not the recordings).
    """

    name: str
    long_name: str
    path: str
    paths: tuple[str, ...]

    def entries(self) -> Iterator[Any]:
        """The rows in order, not parsed; starts afresh at each call."""
        ...

    def row(self, entry: Any, index: int) -> Utterance | RowFailure:
        """Parse one entry; `index` is its position in the whole list."""
        ...

    def place(self, entry: Any) -> str:
        """Where the entry stands, as `file:line`."""
        ...

    def ids(self) -> Iterator[list[str]]:
        """The id of every row in order, in blocks: what `row` would give, found faster."""
        ...

    def keys(self) -> Iterator[list[Hashable] | None]:
        """Stand-ins for `ids`, block by block, where they are much cheaper and equal exactly where ids are.

        A None says that there are none: the ids themselves have to be compared.
        """
        return iter((None,))

    def split_ids(self) -> Iterator[str]:
        """The ids of rows that ask by themselves for a result a channel; no other row is parsed for it."""
        return iter(())

    def check(self) -> None:
        """Raise ManifestError for what makes the input unusable as a whole."""
        ...

    def count(self) -> int:
        """Number of rows."""
        ...

    def sha256(self) -> str:
        """Hex digest of what the input says."""
        ...


def failure(
    row_id: str, index: int, origin: str, error: ManifestRowError, row: Mapping[str, Any]
) -> RowFailure:
    """The error record of a row that cannot be used; the message names place and id."""
    # A message is one line, and an id may hold line ends or be of any length.
    shown = row_id if row_id.isprintable() and len(row_id) <= 200 else repr(row_id)[:200]
    return RowFailure(row_id, index, error.stage, f"{origin} (id={shown}): {error}", row=row, origin=origin)
