"""results.jsonl: appended row by row while a run works, put in manifest order when it ends."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from oasr.errors import OutputError
from oasr.output.append_file import AppendFile
from oasr.output.jsonl import decode_line, encode_value
from oasr.output.rows import row_id
from oasr.types import RequestOutput

RESULTS_NAME = "results.jsonl"
TEMPORARY_PREFIX = ".oasr-tmp-"


class ResultsWriter:
    """`--format jsonl`: all rows, failures too. The run folder itself writes this one."""

    scope: Literal["run"] = "run"
    suffix = RESULTS_NAME

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """The row on one line."""
        return encode_value(row).decode("utf-8") + "\n"


def read_results(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """(offset, id, row) of every row in a results file; blank lines are passed over.

    Raises:
        OutputError: a line that is no result row, with its number.
    """
    with path.open("rb") as lines:
        offset = 0
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield offset, *_result(line, f"{path}:{number}")
            offset += len(line)


def rewrite_in_order(log: AppendFile, offsets: Iterable[int]) -> None:
    """Replace the file by its own lines in the order of `offsets`, in one step: old or new, never half.

    Raises:
        OutputError: `offsets` do not account for every line; the file is left as it is.
        OSError: it cannot be written; the file is left as it is.
    """
    path = log.path
    with path.open("rb") as source, atomic_file(path) as target:
        rows = copied = 0
        for offset in offsets:
            source.seek(offset)
            line = source.readline()
            copied += len(line)
            rows += 1
            target.write(line)
        # A row that somebody else added meanwhile is in no offset, and the new file would lose it.
        source.seek(0)
        if copied != sum(len(line) for line in source if line.strip()):
            raise OutputError(
                f"{path}: it holds rows that this run does not know; left as it is ({rows} rows are known)"
            )


def drop_failed(path: Path) -> None:
    """Rewrite a results file without its error rows, in one step; the others keep their order.

    Raises:
        OutputError: a line that is no result row.
        OSError: it cannot be written; the file is left as it is.
    """
    with path.open("rb") as source, atomic_file(path) as target:
        for offset, _, row in read_results(path):
            if "error" not in row:
                source.seek(offset)
                target.write(source.readline())


@contextmanager
def atomic_file(path: Path, durable: bool = True) -> Iterator[IO[bytes]]:
    """A file written beside `path` that takes its place at the end of the block; on an error nothing changes.

    With `durable` the data is on the disk before the name changes hands.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}")
    try:
        # A link of that name, whoever put it there, must not lead the writing out of the folder.
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as target:
            yield target
            if durable:
                target.flush()
                os.fsync(target.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _result(line: bytes, where: str) -> tuple[str, dict[str, Any]]:
    try:
        row = decode_line(line)
    except ValueError as error:
        raise OutputError(
            f"{where}: expected a result row, found a line that cannot be read ({error}); "
            "repair or remove the line, or start over with --overwrite"
        ) from None
    utterance_id = row_id(row)
    if utterance_id is None or not ("pred_text" in row or "error" in row):
        raise OutputError(
            f"{where}: expected a result row (an id, and pred_text or error), found keys "
            f"{', '.join(row) or 'none'}; is this file a result of oasr?"
        )
    return utterance_id, row
