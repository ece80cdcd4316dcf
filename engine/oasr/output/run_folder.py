"""The output folder of one run: nothing lost at a kill, nothing of anybody else's touched.

    with RunFolder.open(path, resume=True, formats=["txt"]) as folder:
        for utterance in utterances:
            if utterance.id in folder.done_ids:
                folder.note_done((utterance.index, utterance.part), utterance.id)
            else:
                folder.append((utterance.index, utterance.part), utterance.id, row, output)
        folder.finish()

While the run works, `results.jsonl` grows by one whole line a row, in the order in which rows finish.
`finish` puts it in manifest order. A run killed in between loses the rows in flight and no other.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

from oasr.errors import OutputError
from oasr.output.append_file import AppendFile
from oasr.output.folder_checks import check_folder, check_protected, clear_temporary, not_empty
from oasr.output.jsonl import encode_line
from oasr.output.name_book import NameBook
from oasr.output.partial_file import PartialFile
from oasr.output.results_file import RESULTS_NAME, atomic_file, drop_failed, read_results, rewrite_in_order
from oasr.output.run_files import ResultCheck, write_run_file
from oasr.output.run_record import RUN_NAME, write_record
from oasr.output.writers import Writer, build_writers, render
from oasr.types import RequestOutput


class RunFolder:
    """An open output folder. One thread at a time may use it; a second run is locked out until `close`."""

    def __init__(self, path: Path, writers: Mapping[str, Writer]) -> None:
        """Use `RunFolder.open`, which checks the folder first."""
        self.path = path
        self._utterance_writers = {n: w for n, w in writers.items() if w.scope == "utterance"}
        self._run_writers = {n: w for n, w in writers.items() if w.scope == "run" and n != "jsonl"}
        # The lock of the folder: whatever follows may read and remove.
        self._log = AppendFile(path / RESULTS_NAME)
        self._names = NameBook(path)
        self._partial = PartialFile(path, self._names)
        self._stored: dict[str, int] = {}
        # 24 bytes a row: a list may have millions.
        self._indexes, self._parts, self._offsets = array("q"), array("q"), array("q")
        self._ordered = self._finished = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        resume: bool = False,
        overwrite: bool | Literal["later"] = False,
        formats: Iterable[str] | Mapping[str, Writer] = (),
        protected_paths: Iterable[str | os.PathLike[str]] = (),
    ) -> RunFolder:
        """Check the folder, create it, lock it, and read what an earlier run left. Do this before any work.

        Args:
            path: the folder; created with its parents.
            resume: go on where results.jsonl ends.
            overwrite: remove what oasr wrote there before; other files stay. "later": in `start_over`.
            formats: names of `WRITERS`, or what `build_writers` made of them; `jsonl` is always written.
            protected_paths: the manifest and the inputs, which no output may replace.

        Raises:
            OptionsError: both flags, or an unknown format.
            OutputError: the folder cannot be used, or one of its rows cannot be written in one of the
                formats, with the reason and what to do.
        """
        writers = dict(formats) if isinstance(formats, Mapping) else build_writers(formats)
        folder = Path(path)
        check_protected(folder, [w.suffix for w in writers.values() if w.scope == "run"], protected_paths)
        check_folder(folder, resume=resume, overwrite=bool(overwrite))
        with _explained(folder, "cannot be used for output"):
            folder.mkdir(parents=True, exist_ok=True)
            run = cls(folder, writers)
            try:
                run._begin(resume, overwrite)
            except BaseException:
                run.close()
                raise
        return run

    def start_over(self) -> None:
        """Remove what oasr wrote here before. Call it before the first row, after `overwrite="later"`.

        Raises:
            OutputError: something cannot be removed, or a file that is not oasr's has a name that is needed.
        """
        with _explained(self.path, "the earlier results cannot be removed"):
            self._names.remove_files()
            self._log.truncate(0)
            self._reserve_names()

    def _begin(self, resume: bool, overwrite: bool | Literal["later"]) -> None:
        # Behind the lock: before it, the file might be one that another run is writing.
        clear_temporary(self.path)
        if overwrite:
            if overwrite != "later":
                self.start_over()
            return
        if resume:
            self._log.drop_half_line()
            self._read_stored()
        elif self._log.size:  # another run began here since the check
            raise not_empty(self.path)
        self._reserve_names()

    def _reserve_names(self) -> None:
        # Early, since a file of somebody else's by that name must not come out behind the work.
        for writer in self._run_writers.values():
            self._names.reserve(writer.suffix)

    def _read_stored(self) -> None:
        check = ResultCheck(self._run_writers)
        for number, (offset, utterance_id, row) in enumerate(read_results(self._log.path), 1):
            if utterance_id in self._stored:
                first = list(self._stored).index(utterance_id) + 1
                raise OutputError(
                    f"{self._log.path}: rows {first} and {number} both have the id {utterance_id!r}; "
                    "remove one of them, or start over with --overwrite"
                )
            self._stored[utterance_id] = offset
            self._write_files(utterance_id, row, None)
            check.enter(row)

    @property
    def done_ids(self) -> Collection[str]:
        """Ids that results.jsonl held when the folder was opened (failures too); fast `in`."""
        return self._stored.keys()

    @property
    def results_path(self) -> Path:
        """Where results.jsonl is."""
        return self._log.path

    def append(
        self,
        position: tuple[int, int],
        utterance_id: str,
        row: Mapping[str, Any],
        output: RequestOutput | None,
    ) -> None:
        """Write one result for good: its files, then its row. When this returns, a kill cannot lose it.

        Args:
            position: (index, part) of the utterance, which fixes its place in the finished file.
            utterance_id: names the files of the row.
            row: what `result_row` or `failure_row` made.
            output: the engine's result; None for a failure before the engine.

        Raises:
            OutputError: disk full, folder gone, …; says what is saved. The file stays valid.
        """
        if self._ordered:
            raise OutputError(
                f"{self._log.path}: finished already; open the folder again with --resume to add rows"
            )
        line = encode_line(row)
        with _explained(self.path, self._saved()):
            self._check_in_place()
            # Files first: whoever follows results.jsonl finds them there when the row appears.
            self._write_files(utterance_id, row, output)
            self._place(position, self._log.append(line))
            self._partial.note_done(utterance_id)

    def append_part(self, utterance_id: str, output: RequestOutput) -> None:
        """Write what is known of a recording that is not finished (`Engine.stream(partial=True)`).

        Raises:
            OutputError: as `append`.
        """
        with _explained(self.path, self._saved()):
            self._partial.append(utterance_id, output)

    def forget_failed(self) -> int:
        """Take the error rows of earlier runs out of results.jsonl, so that they are tried again; how many.

        Call it before the first `append` or `note_done`: until then every row has its old place.

        Raises:
            OutputError: the file cannot be rewritten; nothing has changed.
        """
        before = len(self._stored)
        failed = sum("error" in row for _, _, row in read_results(self._log.path))
        if failed:
            with _explained(self.path, "the failed rows cannot be taken out of the results"):
                drop_failed(self._log.path)
                self._follow_name()
            self._stored = {name: offset for offset, name, _ in read_results(self._log.path)}
        return before - len(self._stored)

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Replace `run.json`, in one step.

        Raises:
            OutputError: it cannot be written, or a file of that name is not oasr's.
        """
        with _explained(self.path, f"{RUN_NAME} could not be written; {len(self._offsets)} rows are saved"):
            self._check_in_place()
            write_record(self._names.reserve(RUN_NAME), record)

    def results_per_row(self) -> list[tuple[int, int]]:
        """(rows, results of each) in manifest order: which lines belong to which row of the list."""
        parts = (len(list(group)) for _, group in groupby(sorted(self._indexes)))
        return [(len(list(group)), count) for count, group in groupby(parts)]

    def note_done(self, position: tuple[int, int], utterance_id: str) -> None:
        """Tell the place of a row in `done_ids`, so that `finish` can put it there.

        Raises:
            KeyError: the id is not in `done_ids`.
        """
        self._place(position, self._stored[utterance_id])

    def finish(self) -> None:
        """Put results.jsonl in manifest order and write the formats that hold the whole list.

        Rows of an earlier run that `note_done` never named (their manifest rows are gone) are kept, last.

        Raises:
            OutputError: it cannot be written; the rows are all saved, in the order they finished.
        """
        if self._finished:
            return
        with _explained(self.path, f"{self._saved()}, not yet in manifest order"):
            self._put_in_order()
        with _explained(self.path, self._saved()):
            # They are made from results.jsonl, and take over its order.
            for name, writer in self._run_writers.items():
                write_run_file(self.path / writer.suffix, name, writer, self._log.path)
            self._partial.finish()
        self._finished = True

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows written so far, read back one by one; in manifest order after `finish`."""
        for _, _, row in read_results(self._log.path):
            yield row

    def close(self) -> None:
        """Let go of the folder. Without `finish` its rows stay as they are, ready for `resume`."""
        self._log.close()
        self._partial.close()
        self._names.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_files(self, utterance_id: str, row: Mapping[str, Any], output: RequestOutput | None) -> None:
        """The files of one transcribed row; without `output`, only those that are not there."""
        if not self._utterance_writers or "error" in row:
            return
        paths = self._names.claim(utterance_id, [w.suffix for w in self._utterance_writers.values()])
        for (name, writer), path in zip(self._utterance_writers.items(), paths, strict=True):
            # Files appear whole or not at all, so one that is there needs no second look.
            if output is None and path.exists():
                continue
            # Not synced one by one, as the rows of results.jsonl are not: a kill loses neither.
            with atomic_file(path, durable=False) as target:
                target.write(render(name, writer, row, output))

    def _put_in_order(self) -> None:
        if self._ordered:
            return
        self._check_in_place()
        order = self._order()
        if any(a > b for a, b in pairwise(order)):
            rewrite_in_order(self._log, order)
            self._follow_name()
        self._ordered = True

    def _follow_name(self) -> None:
        """Hold and lock the file that has the results' name now, in place of the one that had it."""
        before = self._log
        # The old file is locked until the new one is: whoever opened it meanwhile is refused.
        self._log = AppendFile(before.path)
        before.close()

    def _check_in_place(self) -> None:
        """Raise OutputError when somebody took the file away."""
        if not self._log.in_place:
            raise OutputError(
                f"{self._log.path}: it was removed or replaced while the run was writing it, and "
                f"{len(self._offsets)} rows with it; choose a folder that nothing else cleans up"
            )

    def _place(self, position: tuple[int, int], offset: int) -> None:
        self._indexes.append(position[0])
        self._parts.append(position[1])
        self._offsets.append(offset)

    def _order(self) -> Sequence[int]:
        """Offsets of all rows in manifest order."""
        places = sorted(
            range(len(self._offsets)), key=lambda i: (self._indexes[i], self._parts[i], self._offsets[i])
        )
        order = array("q", (self._offsets[i] for i in places))
        if self._stored:
            known = set(order)
            order.extend(offset for offset in self._stored.values() if offset not in known)
        return order

    def _saved(self) -> str:
        return (
            f"results could not be written ({len(self._offsets)} rows are saved; --resume goes on from there)"
        )


@contextmanager
def _explained(folder: Path, what: str) -> Iterator[None]:
    """Turn an OSError into an OutputError that says where, why and what is safe."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}: {what}") from error
