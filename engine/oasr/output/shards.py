"""The output folders of shards of one list → one, in the order of the list.

Row k of shard I of N is row I + k·N of the list. Which lines belong to which row is in `results_per_row` of
`run.json`, since a row whose channels were split has several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from oasr.errors import OutputError
from oasr.output.results_file import RESULTS_NAME, read_results
from oasr.output.run_files import ResultCheck
from oasr.output.run_folder import RunFolder
from oasr.output.run_record import RUN_NAME, differences, now, read_record
from oasr.output.writers import Writer


@dataclass(frozen=True, slots=True)
class Shard:
    """One finished shard: its folder, its record, and that it is number `index` of `count`."""

    folder: Path
    record: Mapping[str, Any]
    index: int
    count: int

    def rows(self) -> Iterator[list[tuple[str, dict[str, Any]]]]:
        """(id, result) of every result, row of the list by row.

        Raises:
            OutputError: results.jsonl does not hold what the record says.
        """
        path = self.folder / RESULTS_NAME
        results = ((name, row) for _, name, row in read_results(path))
        for rows, each in self.record.get("results_per_row") or ():
            for _ in range(rows):
                found = list(islice(results, each))
                if len(found) < each:
                    raise OutputError(f"{path}: it holds fewer rows than {RUN_NAME} says; run the shard anew")
                yield found
        if (more := next(results, None)) is not None:
            raise OutputError(
                f"{path}: {more[0]!r} belongs to no row of the list ({RUN_NAME}); remove its line and those "
                "behind it, or run the shard anew"
            )


def open_shards(folders: Iterable[Path]) -> list[Shard]:
    """The shards in these folders, in order, if together they are one list, done in one way.

    Raises:
        OutputError: a folder that holds no finished shard, a shard that is there twice or not at all, or
            folders of different lists, models or flags; names the folders.
    """
    shards = sorted((_open(folder) for folder in folders), key=lambda shard: shard.index)
    if not shards:
        raise OutputError("no folder is given: name the output folders of all shards")
    first, owners = shards[0], dict[int, Path]()
    for shard in shards:
        if found := differences(first.record, shard.record, shards=True):
            raise OutputError(
                f"{first.folder} (then) and {shard.folder} (now) are not of one run: {'; '.join(found)}; run "
                "all shards on the same list with the same flags"
            )
        if shard.count != first.count:
            raise OutputError(
                f"{first.folder} is a shard of {first.count}, {shard.folder} one of {shard.count}: "
                "merge shards of one number"
            )
        if shard.index in owners:
            raise OutputError(
                f"{owners[shard.index]} and {shard.folder} both hold shard {shard.index}/{shard.count}; "
                "leave one of them out"
            )
        owners[shard.index] = shard.folder
    if missing := [f"{index}/{first.count}" for index in range(first.count) if index not in owners]:
        raise OutputError(f"of {first.count} shards these are not given: {', '.join(missing)}")
    for _ in rows_in_order(shards):  # what is wrong comes out before anything is written
        pass
    return shards


def rows_in_order(shards: Sequence[Shard]) -> Iterator[tuple[tuple[int, int], str, dict[str, Any]]]:
    """((index, part), id, result) of every result, in the order of the list.

    Raises:
        OutputError: an id that is there twice, a row that is missing, or one that no list has.
    """
    owners: dict[str, Path] = {}
    streams = [shard.rows() for shard in shards]
    total = shards[0].record["list"]["rows"]
    for index in range(total):
        shard = shards[index % len(shards)]
        results = next(streams[shard.index], None)
        if results is None:
            raise OutputError(f"{shard.folder}: row {index} of the list (from 0) is not there; run it anew")
        for part, (name, row) in enumerate(results):
            if name in owners:
                raise OutputError(f"{owners[name]} and {shard.folder} both have the id {name!r}")
            owners[name] = shard.folder
            yield (index, part), name, row
    for shard in shards:
        if next(streams[shard.index], None) is not None:
            raise OutputError(f"{shard.folder}: it holds more rows than its shard of the list has")


def check_formats(shards: Sequence[Shard], writers: Mapping[str, Writer]) -> None:
    """Refuse formats that the rows of all shards together cannot be written in, before the folder is made.

    Raises:
        OutputError: names the format and the row.
    """
    check = ResultCheck(writers)
    for _, _, row in rows_in_order(shards) if check.needed else ():
        check.enter(row)


def merge(
    shards: Sequence[Shard], into: RunFolder, command: str, formats: Sequence[str] = ()
) -> dict[str, int]:
    """Write the rows of all shards in the order of the list, their files, and a record; returns the counts.

    Args:
        shards: what `open_shards` gave.
        into: a folder of `formats`.
        command: what the record calls the command.
        formats: their names, which a run that goes on with the folder writes again.

    Raises:
        OutputError: as `rows_in_order`, or the folder cannot be written.
    """
    results = failed = 0
    for position, name, row in rows_in_order(shards):
        results += 1
        failed += "error" in row
        into.append(position, name, row, None)
    into.finish()
    rows = shards[0].record["list"]["rows"]
    counts = {"rows": rows, "ok": results - failed, "failed": failed, "left": 0}
    record = _merged(shards, command, counts)
    record["settings"] = {**record["settings"], "--format": list(formats)}
    into.write_record(record | {"results_per_row": into.results_per_row()})
    return counts


def _open(folder: Path) -> Shard:
    record = read_record(folder)
    if record is None:
        raise OutputError(f"{folder}: no {RUN_NAME}: expected the output folder of `oasr transcribe --shard`")
    given = record["list"].get("shard")
    index, slash, count = str(given).partition("/")
    # The record of a whole list says null.
    if not (slash and index.isdigit() and count.isdigit()):
        raise OutputError(f"{folder}: it holds a whole list, not a shard of one (made with --shard I/N)")
    if record.get("state") != "finished":
        left = record["counts"].get("left", "some")
        raise OutputError(
            f"{folder}: shard {given} is not finished ({left} rows are left): go on with it by --resume first"
        )
    return Shard(folder, record, int(index), int(count))


def _merged(shards: Sequence[Shard], command: str, counts: Mapping[str, int]) -> dict[str, Any]:
    """The record of the whole: that of the first shard where they are alike."""
    first = shards[0].record
    return {
        **first,
        # All are UTC and of one form, so that text sorts as time does.
        "started": min(str(shard.record.get("started")) for shard in shards),
        "updated": now(),
        "command": command,
        "list": {**first["list"], "shard": None},
        "counts": dict(counts),
        "changes": [change for shard in shards for change in shard.record.get("changes", ())],
        "merged": [str(shard.folder) for shard in shards],
    }
