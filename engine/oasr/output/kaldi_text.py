"""`--format kaldi`: the file `text` of a Kaldi data folder, for the whole list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from oasr.errors import OutputError
from oasr.output.rows import row_id
from oasr.types import RequestOutput


class KaldiTextWriter:
    """`<id> <transcript>` a row, sorted by id as `LC_ALL=C sort` does; failed rows are left out."""

    scope: Literal["run"] = "run"
    suffix = "text"

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """One line; the id alone for an utterance without speech."""
        if "error" in row:
            return ""
        return " ".join([_id(row), *str(row.get("pred_text") or "").split()]) + "\n"

    def place(self, row: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
        """See SortedWriter: every id has a place of its own."""
        return (_id(row),), _id(row)

    def merge(self, texts: list[str]) -> str:
        """See SortedWriter."""
        return "".join(texts)


def _id(row: Mapping[str, Any]) -> str:
    """The row's id, which must be one field of a line.

    Raises:
        OutputError: it is not.
    """
    name = row_id(row) or ""
    if name.split() != [name]:
        raise OutputError(
            f"id {name!r} holds white space, which divides the fields of a Kaldi file: give the rows ids "
            "without it, or leave the format out"
        )
    return name
