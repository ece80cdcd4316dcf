"""Keeps `run.json` of an output folder up to date while the run works."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oasr.errors import OutputError

if TYPE_CHECKING:
    from oasr.output.run_folder import RunFolder

EVERY_S = 5.0
"""Seconds between two updates: each waits for the disk, and a row must not."""


class RecordKeeper:
    """Writes the record at the start, now and then, and at the end. One thread uses it."""

    def __init__(
        self, folder: RunFolder, record: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is written yet."""
        self._folder, self._record, self._clock = folder, dict(record), clock
        self._written = clock()

    def write(self) -> None:
        """Write the record as it is.

        Raises:
            OutputError: it cannot be written.
        """
        from oasr.output.run_record import now

        self._record["updated"] = now()
        self._folder.write_record(self._record)
        self._written = self._clock()

    def counted(self, counts: Mapping[str, int]) -> None:
        """Take the counts after a row; write them when the last time is long ago.

        Raises:
            OutputError: as `write`.
        """
        self._record["counts"] = dict(counts)
        if self._clock() - self._written >= EVERY_S:
            self.write()

    def ended(self, counts: Mapping[str, int], complete: bool) -> None:
        """The run is over: all rows are in, or some are left.

        Raises:
            OutputError: as `write`.
        """
        self._record["counts"] = dict(counts)
        self._record["state"] = "finished" if complete else "stopped"
        if complete:
            # For `oasr merge`, which takes finished shards alone.
            self._record["results_per_row"] = self._folder.results_per_row()
        self.write()

    def broken(self) -> None:
        """The run ends with an error, which is what the user must see, not a second one about the record."""
        self._record["state"] = "stopped"
        with contextlib.suppress(OutputError):
            self.write()
