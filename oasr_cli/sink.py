"""What every destination of a run's rows does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from oasr.types import RequestOutput, RowFailure, Utterance

Row = Utterance | RowFailure
Record = Mapping[str, Any]
"""A result row as it is written."""


class Sink:
    """Takes the rows of one run. This base keeps nothing and finds nothing.

    Attributes:
        in_order: rows must come in the order of the list.
        on_terminal: rows appear where the progress bar is.
    """

    in_order: bool = True
    on_terminal: bool = False

    @property
    def where(self) -> str:
        """What the summary calls the place; "" when the user is looking at it."""
        return ""

    def __enter__(self) -> Sink:
        """The sink, open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of it; what was written stays."""

    def begin(self, about: Callable[[], dict[str, Any]]) -> Iterable[Record]:
        """Get ready for the first row, everything else being ready; the records an earlier run wrote.

        Args:
            about: makes the record of this run (`run.json`), for a place that keeps one.

        Raises:
            OptionsError: what an earlier run left there was made in another way.
        """
        return ()

    def written(self, row: Row) -> Sequence[str]:
        """The ids of this row's results when an earlier run wrote all of them, else none.

        Results that are there are thereby put in their place. Any thread may ask.
        """
        return ()

    def kept(self, row: Row) -> bool:
        """Whether an earlier run wrote this very result: then it stays, and is thereby put in its place.

        That is so with one channel of a row when another one was missing, so that all of them are done again.
        """
        return False

    def write(self, row: Row, record: Record, output: RequestOutput) -> None:
        """Write one record for good."""
        raise NotImplementedError(f"{type(self).__name__} must implement write")

    def part(self, row: Row, output: RequestOutput) -> None:
        """Show windows of a recording that is not finished; its record comes later all the same."""

    def counted(self, counts: Mapping[str, int]) -> None:
        """Take note of how far the run is; called after each row."""

    def finish(self) -> None:
        """No more rows will come."""

    def ended(self, counts: Mapping[str, int], complete: bool) -> None:
        """The run is over, with or without rows that are left."""
