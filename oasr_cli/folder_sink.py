"""Rows into an output folder, which an interrupted run can be resumed in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from oasr.errors import AudioError, OptionsError, OutputError
from oasr.types import RequestOutput, Utterance

from oasr_cli import console, resume
from oasr_cli.record_keeper import RecordKeeper
from oasr_cli.settings import Job
from oasr_cli.sink import Record, Row, Sink

if TYPE_CHECKING:
    from oasr.output.run_folder import RunFolder
    from oasr.output.writers import Writer


class FolderSink(Sink):
    """The output folder: rows land as they finish and are put in order at the end."""

    in_order = False

    def __init__(self, job: Job, writers: Mapping[str, Writer], sources: Iterable[str]) -> None:
        """Check and lock the folder before the model loads; only `begin`, after that, drops old results."""
        self._job = job
        self._run = run = job.run
        self._record: RecordKeeper | None = None
        self._results_before: Callable[[int], int | None] = lambda index: None
        self._writers = writers
        self._path = Path(run.output_dir or "")
        self._sources = tuple(sources)
        # Readers ask `written` while rows are being written, and a RunFolder is for one thread at a time.
        self._lock = threading.Lock()
        try:
            self._check()
            self._opened = self._open()
        except OutputError as error:
            raise OptionsError(f"--output-dir: {error}") from error

    @property
    def where(self) -> str:
        """The results file, and the formats beside it."""
        others = [name for name in self._run.formats if name != "jsonl"]
        return f"{self._path / 'results.jsonl'}{f' and {len(others)} more formats' if others else ''}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._record is not None and error is not None:
            self._record.broken()
        # Last, since the lock goes with it.
        self._opened.close()

    def begin(self, about: Callable[[], dict[str, Any]]) -> Iterable[Record]:
        """Drop what is to be overwritten and begin the run.json; the records that are there."""
        # Now, since the record of this run takes the place of that one.
        self._results_before = resume.results_before(self._job)
        record = resume.continued(self._job, about())
        if self._run.overwrite:
            self._opened.start_over()
        self._record = RecordKeeper(self._opened, record)
        # Behind the comparison: a run that is refused must leave the folder as it was.
        if self._run.retry_failed and (failed := self._opened.forget_failed()):
            console.note(f"{failed} failed {'row' if failed == 1 else 'rows'} of the earlier run tried again")
        self._record.write()
        return self._opened.rows() if self._opened.done_ids else ()

    def written(self, row: Row) -> Sequence[str]:
        """See Sink. A row whose channels were split is written when every one of them is."""
        done = self._opened.done_ids
        # Outside the lock: `done_ids` are those of earlier runs, and the header of a recording may take long.
        ids = [row.id] if row.id in done else self._split_ids(row)
        if not all(one in done for one in ids):
            return ()
        with self._lock:
            for part, one in enumerate(ids):
                self._opened.note_done((row.index, part), one)
        return ids

    def kept(self, row: Row) -> bool:
        """See Sink."""
        if row.id not in self._opened.done_ids:
            return False
        with self._lock:
            self._opened.note_done((row.index, row.part), row.id)
        return True

    def write(self, row: Row, record: Record, output: RequestOutput) -> None:
        """See Sink."""
        with self._lock:
            self._opened.append((row.index, row.part), row.id, record, output)

    def part(self, row: Row, output: RequestOutput) -> None:
        """See Sink. Of a result that stays nothing is unfinished."""
        if row.id in self._opened.done_ids:
            return
        with self._lock:
            self._opened.append_part(row.id, output)

    def counted(self, counts: Mapping[str, int]) -> None:
        """See Sink."""
        if self._record is not None:
            self._record.counted(counts)

    def finish(self) -> None:
        """Put the rows in the order of the list."""
        self._opened.finish()

    def ended(self, counts: Mapping[str, int], complete: bool) -> None:
        """See Sink."""
        if self._record is not None:
            self._record.ended(counts, complete)

    def _open(self) -> RunFolder:
        from oasr.output.run_folder import RunFolder

        run = self._run
        return RunFolder.open(
            self._path,
            resume=run.resume,
            overwrite="later" if run.overwrite else False,
            formats=self._writers,
            protected_paths=self._sources,
        )

    def _split_ids(self, row: Row) -> list[str]:
        """The ids of the row's channels when an earlier run split it; [] when there are none."""
        if f"{row.id}-ch0" not in self._opened.done_ids or not isinstance(row, Utterance):
            return []
        from oasr.audio.channels import split_rows
        from oasr.audio.waveform import channel_policy

        # Where nothing is split, `x-ch0` is another row of the list.
        if channel_policy(row, self._run.channel) != "split":
            return []
        count = _channel_count(row) or self._results_before(row.index)
        # Without a count the row is done again: better twice than without one of its channels.
        return [] if count is None else [channel.id for channel in split_rows(row, count)]

    def _check(self) -> None:
        """What `_open` would refuse, without changing anything."""
        from oasr.output.folder_checks import check_folder, check_protected

        files = [writer.suffix for writer in self._writers.values() if writer.scope == "run"]
        check_protected(self._path, files, self._sources)
        check_folder(self._path, resume=self._run.resume, overwrite=self._run.overwrite)
        # The folder may not be there yet: then the nearest one above has to take it in.
        there = next(path for path in (self._path, *self._path.absolute().parents) if path.exists())
        if not os.access(there, os.W_OK):
            raise OutputError(f"{there}: this folder may not be written to; choose another output folder")


def _channel_count(row: Utterance) -> int | None:
    """Channels of a recording as its header states them; None when it cannot be looked at."""
    from oasr.audio.probe import probe

    # A command must not run for this, and a named pipe gives what it has once.
    if not os.path.isfile(row.audio):  # noqa: PTH113 (False for what can be no path, which a Path may raise)
        return None
    try:
        return probe(row, "split").channels
    except AudioError:
        return None
