"""Formats that are one file for the whole list: their order, and the names that they cannot write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from oasr.errors import OutputError
from oasr.output.jsonl import decode_line
from oasr.output.results_file import atomic_file, read_results
from oasr.output.rows import row_id
from oasr.output.writers import SortedWriter, Writer, render

Place = tuple[str, ...]


def check_places(writers: Mapping[str, Writer], rows: Iterable[Mapping[str, Any]]) -> None:
    """Refuse rows whose names a sorted format cannot write, or cannot tell apart, before any work.

    Holds two 64-bit numbers a place.

    Raises:
        OutputError: names the format and the rows.
    """
    books = _books(writers)
    for row in rows if books else ():
        for book in books:
            book.enter(row)


class ResultCheck:
    """Whether the files of the list can be made of result rows; told before the work, not at its end.

    Holds two 64-bit numbers a place of a sorted format.
    """

    def __init__(self, writers: Mapping[str, Writer]) -> None:
        """`writers` are those of the run; the formats of scope "utterance" are passed over."""
        self._writers = {n: w for n, w in writers.items() if w.scope == "run" and n != "jsonl"}
        self._books = _books(self._writers)

    @property
    def needed(self) -> bool:
        """Whether there is a format that could refuse a row."""
        return bool(self._writers)

    def enter(self, row: Mapping[str, Any]) -> None:
        """Take in the next row, in the order of the list.

        Raises:
            OutputError: names the format and the row.
        """
        for name, writer in self._writers.items():
            render(name, writer, row, None)
        if "error" not in row:  # failed rows have no place
            for book in self._books:
                book.enter(row)


def write_run_file(path: Path, name: str, writer: Writer, results: Path) -> None:
    """Write the file of one format of scope "run" from the rows of `results`.

    Raises:
        OutputError: a row that the format cannot write.
        OSError: the file cannot be written; an older one is left as it is.
    """
    with atomic_file(path) as target:
        if isinstance(writer, SortedWriter):
            for text in _sorted_texts(name, writer, results):
                target.write(text)
        else:
            for _, _, row in read_results(results):
                target.write(render(name, writer, row, None))


def _sorted_texts(name: str, writer: Any, results: Path) -> Iterator[bytes]:
    """The merged text of each place; in memory are the places, and the rows of one of them."""
    book = _Places(name, writer)
    order = [(book.enter(row), offset) for offset, _, row in read_results(results) if "error" not in row]
    # Rows are read twice, so that the texts of a long list are never held, only their places.
    # Sorting is stable: those of one place stay in the order of the list.
    order.sort(key=itemgetter(0))
    with results.open("rb") as lines:
        for _, group in groupby(order, key=itemgetter(0)):
            texts = []
            for _, offset in group:
                lines.seek(offset)
                row = decode_line(lines.readline())
                texts.append(render(name, writer, row, None).decode("utf-8"))
            yield writer.merge(texts).encode("utf-8")


def _books(writers: Mapping[str, Writer]) -> list[_Places]:
    return [_Places(name, writer) for name, writer in writers.items() if isinstance(writer, SortedWriter)]


class _Places:
    """Who owns which place of one format."""

    def __init__(self, name: str, writer: Any) -> None:
        self._name, self._writer = name, writer
        self._owners: dict[int, int] = {}

    def enter(self, row: Mapping[str, Any]) -> Place:
        """The place of `row`, which is free or its owner's.

        Raises:
            OutputError: the format cannot write it, it is no UTF-8, or it is another owner's.
        """
        try:
            place, owner = self._writer.place(row)
        except OutputError as error:
            raise OutputError(f"output format {self._name!r}: {error}") from error
        called = " ".join(place)
        try:
            called.encode("utf-8")
        except UnicodeEncodeError as error:
            # `render` would write a `?` for each such byte, and two recordings would become one.
            raise OutputError(
                f"output format {self._name!r}: row {row_id(row)!r} is called {called!r} there, which holds "
                "bytes that are not UTF-8: give the row an id in UTF-8 (for ctm and rttm a key `recording` "
                "does, too), or leave the format out"
            ) from error
        digest = _digest(owner)
        if self._owners.setdefault(_digest("\0".join(place)), digest) != digest:
            raise OutputError(
                f"output format {self._name!r}: another recording than that of row {row_id(row)!r} ({owner}) "
                f"is called {called!r} too; give the rows of both a key `recording` that tells them "
                "apart, or leave the format out"
            )
        return place


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
