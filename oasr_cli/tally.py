"""What a run has done so far, and how that reads on a line."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from oasr.types import RequestOutput, RowFailure, Utterance

from oasr_cli.console import printable

SHOWN_FAILURES = 5


@dataclass(slots=True)
class Tally:
    """Counts of one run.

    Attributes:
        total: rows in the list, when that is known.
        finished: rows of the list that this run finished.
        open_parts: results of rows that have not all of theirs, by the index of the row.
        ok, failed: results of this run; split channels count one each.
        skipped: rows that an earlier run wrote.
        skipped_ok, skipped_failed: the results of those.
        kept_ok, kept_failed: results of an earlier run in rows that it did not finish.
        audio_s: seconds of audio transcribed, in rows that are finished.
        open_s: the same in those that are not, by the place of the row.
        warned: results with a warning.
        cut: results that ended at the token limit.
        failures: the first few failures, readable.
        started: clock at the start of the work, the model loaded.
    """

    total: int | None = None
    finished: int = 0
    open_parts: dict[int, int] = field(default_factory=dict)
    ok: int = 0
    failed: int = 0
    skipped: int = 0
    skipped_ok: int = 0
    skipped_failed: int = 0
    kept_ok: int = 0
    kept_failed: int = 0
    audio_s: float = 0.0
    open_s: dict[tuple[int, int], float] = field(default_factory=dict)
    warned: int = 0
    cut: int = 0
    failures: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic
    started: float = 0.0
    stopped: float | None = None

    def start(self) -> None:
        """Start the clock that the speed is measured with."""
        self.started = self.clock()

    def stop(self) -> None:
        """Stop it."""
        self.stopped = self.clock()

    def skip(self, ok: int, failed: int) -> None:
        """Count a row that an earlier run wrote, by its results.

        One thread at a time may call it, beside `count`.
        """
        self.skipped += 1
        self.skipped_ok += ok
        self.skipped_failed += failed

    def part(self, row: Utterance | RowFailure, output: RequestOutput) -> None:
        """Count windows of a recording that is not finished."""
        place = row.index, row.part
        self.open_s[place] = self.open_s.get(place, 0.0) + output.duration_s

    def count(self, row: Utterance | RowFailure, output: RequestOutput) -> None:
        """Count one result."""
        self._came(row)
        self.warned += bool(output.warnings)
        if output.ok:
            self.ok += 1
            self.audio_s += output.duration_s
            self.cut += output.finish_reason == "length"
            return
        self.failed += 1
        if len(self.failures) < SHOWN_FAILURES:
            self.failures.append(failure_line(row, output))

    def keep(self, row: Utterance | RowFailure, output: RequestOutput, failed: bool) -> None:
        """Count a result that an earlier run had written already, which stays as it is.

        Args:
            row: one channel of a row that is done again for the sake of another one.
            output: what this run made of it, which took its time and is not written.
            failed: the result that stays is a failure.
        """
        self._came(row)
        # Not with those of `skip`, which another thread counts.
        self.kept_ok += not failed
        self.kept_failed += failed
        self.audio_s += output.duration_s if output.ok else 0.0

    def _came(self, row: Utterance | RowFailure) -> None:
        """A result of `row` is there. Channels that were split are one row, finished when all of them are."""
        self.open_s.pop((row.index, row.part), None)
        came = self.open_parts.pop(row.index, 0) + 1
        if came < row.parts:
            self.open_parts[row.index] = came
        else:
            self.finished += 1

    @property
    def done(self) -> int:
        """Rows of the list that need no more work."""
        return self.finished + self.skipped

    @property
    def left(self) -> int:
        """Rows of the list that still need work, as far as is known."""
        return 0 if self.total is None else max(0, self.total - self.done)

    @property
    def all_ok(self) -> int:
        """Results without an error, this run's and earlier ones'."""
        return self.ok + self.skipped_ok + self.kept_ok

    @property
    def all_failed(self) -> int:
        """Results with an error, this run's and earlier ones'."""
        return self.failed + self.skipped_failed + self.kept_failed

    @property
    def counts(self) -> dict[str, int]:
        """For `run.json`: rows of the list, results of this run and earlier ones, rows that are left."""
        return {
            "rows": self.done if self.total is None else self.total,
            "ok": self.all_ok,
            "failed": self.all_failed,
            "left": self.left,
        }

    @property
    def wall_s(self) -> float:
        """Seconds since the start of the work."""
        return (self.clock() if self.stopped is None else self.stopped) - self.started

    @property
    def rtfx(self) -> float:
        """Audio seconds a wall second."""
        return (self.audio_s + sum(self.open_s.values())) / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """Seconds until the list is through at the pace so far; None while there is no telling."""
        if self.total is None or self.finished == 0:
            return None
        # Rows that were done before have taken none of this run's time.
        return self.left * self.wall_s / self.finished

    def progress_line(self) -> str:
        """`120/341 rows · 45.3× real time · 2 failed · 0:01:20 left`."""
        parts = [f"{self.done}{'' if self.total is None else f'/{self.total}'} rows"]
        if self.open_s:
            parts.append(f"{clock_time(sum(self.open_s.values()))} into long recordings")
        if self.audio_s or self.open_s:
            parts.append(f"{self.rtfx:.1f}× real time")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.eta_s is not None:
            parts.append(f"{clock_time(self.eta_s)} left")
        return " · ".join(parts)

    def summary(self) -> list[str]:
        """The lines that end a run."""
        counts = [f"{self.ok} ok", f"{self.failed} failed"]
        if before := self.all_ok + self.all_failed - self.ok - self.failed:
            counts.append(f"{before} done before")
        speed = (
            f"{self.audio_s / 3600:.2f} h of audio in {clock_time(self.wall_s)} · {self.rtfx:.1f}× real time"
        )
        lines = [f"rows: {', '.join(counts)} · {speed}"]
        lines += [f"  failed: {text}" for text in self.failures]
        if self.failed > len(self.failures):
            lines.append(f"  ... and {self.failed - len(self.failures)} more; every failed row says why")
        if self.warned:
            lines.append(f"warnings: {self.warned} {_rows(self.warned)}, see `warnings` in the results")
        if self.cut:
            lines.append(f"cut: {self.cut} {_rows(self.cut)} ended at the token limit, see --max-new-tokens")
        return lines


def failure_line(row: Utterance | RowFailure, output: RequestOutput) -> str:
    """`list.jsonl:7 (id "a/x"): audio: no such file`, on one line whatever the row holds."""
    where = f"{row.origin} (id {row.id!r})" if row.origin else f"id {row.id!r}"
    message = output.error_message or "no reason given"
    # A row's own message may name its place already.
    text = message if row.origin and row.origin in message else f"{where}: {output.error_stage}: {message}"
    return printable(text)


def clock_time(seconds: float) -> str:
    """`4.2 s` below a minute, else `h:mm:ss`."""
    # From there on, one decimal would read 60.0 s.
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"
