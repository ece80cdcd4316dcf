"""Rows into an output folder, which an interrupted run can be resumed in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from oasr.errors import OptionsError, OutputError
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
        """Check the folder before the model loads; old results are only dropped in `begin`, after it has."""
        self._job = job
        self._run = run = job.run
        self._record: RecordKeeper | None = None
        self._writers = writers
        self._path = Path(run.output_dir or "")
        self._sources = tuple(sources)
        # Readers ask `written` while rows are being written, and a RunFolder is for one thread at a time.
        self._lock = threading.Lock()
        try:
            self._check()
            self._folder = None if run.overwrite else self._open()
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
        if self._folder is not None:
            if self._record is not None and error is not None:
                self._record.broken()
            # Last, since the lock goes with it.
            self._folder.close()

    def begin(self, about: Callable[[], dict[str, Any]]) -> Iterable[Record]:
        """Open the folder, if it is not, and begin its run.json; the records that are there."""
        if self._folder is None:
            self._folder = self._open()
        self._record = RecordKeeper(self._folder, resume.continued(self._job, about()))
        # Behind the comparison: a run that is refused must leave the folder as it was.
        if self._run.retry_failed and (failed := self._folder.forget_failed()):
            console.note(f"{failed} failed {'row' if failed == 1 else 'rows'} of the earlier run tried again")
        self._record.write()
        return self._folder.rows() if self._folder.done_ids else ()

    def written(self, row: Row) -> Sequence[str]:
        """See Sink. A row whose channels were split is written when every one of them is."""
        with self._lock:
            folder = self._opened
            ids = [row.id] if row.id in folder.done_ids else self._split_ids(row)
            if not all(one in folder.done_ids for one in ids):
                return ()
            for part, one in enumerate(ids):
                folder.note_done((row.index, part), one)
            return ids

    def write(self, row: Row, record: Record, output: RequestOutput) -> None:
        """See Sink. A channel that a stopped run had written already stays as it is."""
        with self._lock:
            if row.id in self._opened.done_ids:
                self._opened.note_done((row.index, row.part), row.id)
            else:
                self._opened.append((row.index, row.part), row.id, record, output)

    def part(self, row: Row, output: RequestOutput) -> None:
        """See Sink."""
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

    @property
    def _opened(self) -> RunFolder:
        if self._folder is None:
            raise OutputError(f"{self._path}: the output folder is not open yet")
        return self._folder

    def _open(self) -> RunFolder:
        from oasr.output.run_folder import RunFolder

        run = self._run
        return RunFolder.open(
            self._path,
            resume=run.resume,
            overwrite=run.overwrite,
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
        return [channel.id for channel in split_rows(row, _channel_count(row.audio))]

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


def _channel_count(path: str) -> int:
    """Channels that the header of a recording states; 1 when it cannot be read that easily."""
    import soundfile

    try:
        return soundfile.info(path).channels
    except (OSError, RuntimeError):  # soundfile's own error is a RuntimeError
        return 1
