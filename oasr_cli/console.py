"""The only file that prints, and the only one that turns errors into messages and exit codes.

Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from oasr.errors import ManifestError, OasrError, OptionsError, OutputError, RowError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LOG_LEVELS = ("debug", "info", "warning", "error")
_GAP, _LEAST_FOLDED = 2, 16
"""Blanks between two columns of a table, and what is left of its widest one before it becomes lists."""


class ExitCode(IntEnum):
    """What the shell is told; a run that a signal ended exits with 128 + its number."""

    OK = 0
    BROKEN = 1
    USAGE = 2
    PARTIAL = 3
    GATE = 4


class Interrupted(BaseException):
    """A signal told the run to stop now."""

    def __init__(self, signum: int) -> None:
        """`signum` is the number of the signal."""
        super().__init__(signum)
        self.exit_code = 128 + signum


@lru_cache(maxsize=1)
def stderr() -> Console:
    """The console that notes, the progress bar and errors share, so that they never overwrite each other."""
    from rich.console import Console

    # On a terminal lines break between words; in a file one message is one line.
    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=not sys.stderr.isatty())


def open_closed_streams() -> None:
    """Let a process that was started without standard streams (`2>&-`, some daemons) run all the same."""
    # Else a file of ours would get the number of one, and whatever a library prints would go into it.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as we do


def stdout_is_terminal() -> bool:
    """True when a person reads the results as they come."""
    return sys.stdout is not None and sys.stdout.isatty()


def note(text: str, style: str | None = None) -> None:
    """Print a line for people to stderr; `text` is shown as it is."""
    stderr().print(text, style=style, markup=False)


def busy(doing: str) -> AbstractContextManager[object]:
    """A spinner beside `doing` while the block runs; nothing where stderr is no terminal."""
    if not stderr().is_terminal:
        return nullcontext()
    return stderr().status(_escape(doing))


def note_at_once(text: str) -> None:
    """Like `note`, from a signal handler: such code may interrupt any other, even in the middle of a note."""
    # The bar may stand on this line. One write past all buffers, whose locks the code underneath may hold.
    start = "\r\x1b[2K" if sys.stderr.isatty() else ""
    os.write(sys.stderr.fileno(), f"{start}{text}\n".encode())


def result(text: str) -> None:
    """Write one line of output to stdout as UTF-8, whatever the locale, and flush it."""
    result_bytes(text.encode(errors="replace") + b"\n")


def result_bytes(line: bytes) -> None:
    """Write a finished line to stdout and flush it.

    Raises:
        BrokenPipeError: nobody reads any more.
        OutputError: it cannot be written for another reason, such as a full disk.
    """
    if sys.stdout is None:
        raise OutputError("stdout is closed: results have nowhere to go; redirect it or give --output-dir")
    try:
        # What was printed as text until now waits in a buffer of its own, and comes first.
        sys.stdout.flush()
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python keeps what it could not write, and would fail over it once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"stdout: {error.strerror or error}: results could not be written") from error


def result_json(value: object) -> None:
    """Write `value` to stdout as indented JSON."""
    result(json.dumps(value, ensure_ascii=False, indent=2))


def styled_result(name: tuple[str, str], text: str, style: str = "") -> None:
    """Write one line to stdout: a (name, style) pair, then `text` in `style`; plain when redirected."""
    from rich.text import Text

    if stdout_is_terminal():
        _stdout().print(Text.assemble(name, (text, style)))
    else:
        result(name[0] + text)


def result_spans(spans: Iterable[tuple[str, str]]) -> None:
    """Write (text, style) pieces to stdout: folded between words on a terminal, one plain line elsewhere."""
    from rich.text import Text

    text = Text.assemble(*spans)
    text.rstrip()
    if stdout_is_terminal():
        _stdout().print(text, soft_wrap=False)
    else:
        result(text.plain)


def stdout_width() -> int | None:
    """Columns of the terminal that stdout is; None when it is none."""
    return _stdout().width if stdout_is_terminal() else None


def result_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str | tuple[str, str]]],
    right: Collection[int] = (),
    fold: int = -1,
) -> None:
    """Print a table to stdout: folded to the terminal's width, or one tabbed line a row when redirected.

    In a terminal too narrow for that, each row is a list of its own, a line a column: nothing is cut off.

    Args:
        header: one title a column.
        rows: cells as text, or as (text, style).
        right: numbers of the columns that are set flush right.
        fold: number of the column that gives way when the terminal is too narrow.
    """
    if not stdout_is_terminal():
        for row in (header, *rows):
            result("\t".join(cell if isinstance(cell, str) else cell[0] for cell in row))
        return
    from rich.table import Table
    from rich.text import Text

    folded = fold % len(header)
    styled = [[Text(cell) if isinstance(cell, str) else Text(*cell) for cell in row] for row in rows]
    columns = zip([Text(title) for title in header], *styled, strict=True)
    widths = [max(cell.cell_len for cell in column) for column in columns]
    widths[folded] = min(widths[folded], _LEAST_FOLDED)
    if sum(widths) + _GAP * (len(widths) - 1) > _stdout().width:
        _print_records(header, styled)
        return
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for number, title in enumerate(header):
        table.add_column(
            title,
            header_style="bold",
            no_wrap=number != folded,
            overflow="fold",
            justify="right" if number in right else "left",
        )
    for cells in styled:
        table.add_row(*cells)
    _stdout().print(table, soft_wrap=False)


def _stdout() -> Console:
    """A console on stdout as it is now."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, emoji=False, soft_wrap=True)


def _print_records(header: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """Each row as lines of title and cell, with a blank line between two rows."""
    from rich.table import Table

    for number, row in enumerate(rows):
        record = Table.grid(padding=(0, _GAP, 0, 0))
        record.add_column(no_wrap=True, style="bold")
        record.add_column(overflow="fold")
        for title, cell in zip(header, row, strict=True):
            record.add_row(title, cell)
        _stdout().print(*([""] if number else []), record, sep="\n", soft_wrap=False)


def printable(text: str) -> str:
    """`text` on one line: control characters, which could repaint the terminal, are shown escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def setup_logging(level: str) -> None:
    """Send log records of `level` and above to stderr, above the progress bar.

    Python warnings of the libraries below are shown from `info` on: a user can do nothing about them.

    Raises:
        OptionsError: not a level.
    """
    if level not in LOG_LEVELS:
        raise OptionsError(f"--log-level: expected one of {', '.join(LOG_LEVELS)}, got {level!r}")
    logging.captureWarnings(True)
    # By force: the handler of a library that got in first would write across the bar.
    logging.basicConfig(level=level.upper(), handlers=[_NoteHandler()], force=True)
    shown = level in ("debug", "info")
    logging.getLogger("py.warnings").setLevel(logging.NOTSET if shown else logging.ERROR)


class _NoteHandler(logging.Handler):
    """Log records as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.levelname.lower()}: {record.name}: {record.getMessage()}"
        if record.exc_info:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        note(text)


def report(error: BaseException) -> int:
    """Say what went wrong, in one message, and return the exit code that belongs to it.

    A closed pipe does not come here: Typer ends the command for it, quietly, with exit code 1.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, Interrupted):
        return error.exit_code
    # Ctrl-C where no StopSwitch is in force, as while modules are imported.
    if isinstance(error, KeyboardInterrupt):
        return 130
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        note("".join(traceback.format_exception(error)).rstrip())
    stderr().print(f"[bold red]error:[/] {_escape(message(error))}")
    return ExitCode.USAGE if isinstance(error, OptionsError | ManifestError | RowError) else ExitCode.BROKEN


def message(error: BaseException) -> str:
    """The text for people; an error nobody foresaw names its type and how to see where it came from."""
    if isinstance(error, OasrError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return f"{type(error).__name__}: {error} (unexpected; --log-level debug shows where)"


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
