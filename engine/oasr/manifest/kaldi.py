"""Kaldi data folders: `wav.scp`, with `segments` and the side tables when they are there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

from oasr.errors import ManifestError, ManifestRowError
from oasr.manifest.duplicates import scan_ids
from oasr.manifest.lines import LineFile, check_length
from oasr.manifest.paths import Resolver, readable_path
from oasr.manifest.reader import failure
from oasr.manifest.segments import Segment, channel_of, parse_segment
from oasr.manifest.tables import KeyedTable
from oasr.types import RowFailure, Utterance

TABLES = ("wav.scp", "segments", "text", "utt2spk", "utt2lang", "reco2file_and_channel")
Entry = tuple[int, bytes]


class KaldiReader:
    """The rows of one data folder: its segments, or its recordings where there are none.

    The file that lists the rows is read line by line; the others are looked up (KeyedTable).
    """

    def __init__(self, folder: str, resolver: Resolver, allow_pipes: bool = False) -> None:
        """`folder` holds at least `wav.scp`; without `allow_pipes` a row that is a command fails."""
        files = {name: f"{folder}/{name}" for name in TABLES}
        # A link that leads nowhere counts as there: to open it fails, while a table passed over goes unseen.
        self._lines = {name: LineFile(path) for name, path in files.items() if os.path.lexists(path)}
        self._tables = {name: KeyedTable(lines) for name, lines in self._lines.items()}
        self._resolver = resolver
        self._allow_pipes = allow_pipes
        self.name = "segments" if "segments" in self._lines else "wav.scp"
        self.lines = self._lines[self.name]
        self.long_name = self.lines.path
        self.path = folder
        self.paths: tuple[str, ...] = (folder, *(lines.path for lines in self._lines.values()))

    def entries(self) -> Iterator[Entry]:
        """(line number, line) of each row."""
        return self.lines.numbered()

    def place(self, entry: Entry) -> str:
        """`file:line` of the row."""
        return f"{self.lines.path}:{entry[0]}"

    def row(self, entry: Entry, index: int) -> Utterance | RowFailure:
        """The row itself, or why it cannot be used."""
        number, line = entry
        # Bytes divide at ASCII blanks alone; those of other scripts are part of an id or a word.
        key, *rest = line.split(None, 1)
        row: dict[str, Any] = {"id": self._id(key, number)}
        origin = self.place(entry)
        try:
            check_length(line)
            segment, source = self._locate(key, rest[0].rstrip() if rest else b"")
            self._describe(row, key, segment, source)
            return self._utterance(row, segment, source, index, origin)
        except ManifestRowError as error:
            return failure(row["id"], index, origin, error, row)

    def ids(self) -> Iterator[list[str]]:
        """The ids of all rows, in order, block by block."""
        return self._ids_of(self.name)

    def keys(self) -> Iterator[list[Hashable] | None]:
        """None: the ids are cheap as they are."""
        return iter((None,))

    def split_ids(self) -> Iterator[str]:
        """None: only the run as a whole can ask for channels apart."""
        return iter(())

    def check(self) -> None:
        """Refuse a folder in which one recording id stands for two recordings."""
        if self.name == "wav.scp":
            return  # its lines are the rows, whose ids are compared anyway
        scan = scan_ids(lambda: self._ids_of("wav.scp"))
        if scan.pair:
            lines = self._lines["wav.scp"]
            first, second = (next(islice(lines.numbered(), at, None))[0] for at in scan.pair)
            raise ManifestError(
                f"two recordings have the id {scan.id!r}: {lines.path}:{first} and {lines.path}:{second}; "
                "give each recording an id of its own"
            )

    def count(self) -> int:
        """Number of rows."""
        return self.lines.count()

    def sha256(self) -> str:
        """Hex digest over the names and digests of the tables that are there."""
        listing = "".join(f"{lines.sha256()}  {name}\n" for name, lines in self._lines.items())
        return hashlib.sha256(listing.encode()).hexdigest()

    def _ids_of(self, table: str) -> Iterator[list[str]]:
        number = 1
        for block in self._lines[table].blocks():
            split = ((n, line.split(None, 1)) for n, line in enumerate(block, number))
            yield [self._id(fields[0], n) for n, fields in split if fields]
            number += len(block)

    def _id(self, key: bytes, number: int) -> str:
        try:
            return key.decode()
        except UnicodeDecodeError:
            return f"{self.name}:{number}"

    def _locate(self, key: bytes, rest: bytes) -> tuple[Segment, bytes]:
        """The stretch that the row means, and its recording as `wav.scp` writes it."""
        try:
            key.decode()
        except UnicodeDecodeError as error:
            raise ManifestRowError(f"expected an id in UTF-8, found {key!r}") from error
        if self.name == "wav.scp":
            segment, source = Segment(key), rest
        else:
            segment = parse_segment(rest)
            found = self._tables["wav.scp"].get(segment.recording)
            if found is None:
                raise ManifestRowError(
                    f"wav.scp has no recording {segment.recording.decode(errors='replace')}"
                )
            source = found
        if not source or b"\0" in source:
            raise ManifestRowError(f"expected the path of a recording after the id, found {source!r}")
        return segment, source

    def _describe(self, row: dict[str, Any], key: bytes, segment: Segment, source: bytes) -> None:
        """Fill in what the folder says about the row, under the key names of a JSONL manifest."""
        row["audio"] = readable_path(os.fsdecode(source))
        if self.name == "segments":
            row.update(recording=segment.recording.decode(errors="replace"), offset=segment.offset)
        found = {
            "duration": segment.duration,
            "channel": self._channel(segment, source),
            "text": self._look_up("text", key),
            "speaker": self._look_up("utt2spk", key),
            "language": self._look_up("utt2lang", key),
        }
        row.update((name, value) for name, value in found.items() if value is not None)

    def _utterance(
        self, row: dict[str, Any], segment: Segment, source: bytes, index: int, origin: str
    ) -> Utterance:
        piped = source.endswith(b"|")
        if piped and not self._allow_pipes:
            raise ManifestRowError(
                f"wav.scp wants a command run: {row['audio'][:80]}; "
                "--allow-pipes permits that, for lists you trust"
            )
        return Utterance(
            id=row["id"],
            audio="" if piped else self._resolver.resolve(os.fsdecode(source)),
            index=index,
            offset=segment.offset,
            duration=segment.duration,
            channel=row.get("channel"),
            command=os.fsdecode(source[:-1].strip()) if piped else None,
            text=row.get("text"),
            language=row.get("language") or None,  # utt2lang may hold an id alone
            row=row,
            origin=origin,
        )

    def _channel(self, segment: Segment, source: bytes) -> int | None:
        """From `segments`, else from `reco2file_and_channel`.

        The latter numbers the channels of the original file, for scoring. A command in `wav.scp`
        has picked one of them already, so there it says nothing about what the command writes.
        """
        stated = self._look_up("reco2file_and_channel", segment.recording)
        if stated is None or source.endswith(b"|"):
            return segment.channel
        channel = channel_of(stated)
        if segment.channel not in (None, channel):
            raise ManifestRowError(
                f"segments says channel {segment.channel} and reco2file_and_channel says {channel}"
            )
        return channel

    def _look_up(self, table: str, key: bytes) -> str | None:
        return self._tables[table].get_text(key) if table in self._tables else None
