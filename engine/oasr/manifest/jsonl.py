"""JSONL manifests: one JSON object a line → Utterance or RowFailure, read lazily."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from oasr.errors import ManifestRowError
from oasr.manifest import dialect
from oasr.manifest.json_line import line_id, parse_line, plain_ids, plain_keys
from oasr.manifest.lines import LineFile, check_length
from oasr.manifest.paths import Resolver
from oasr.manifest.reader import failure
from oasr.types import RowFailure, Utterance

Entry = tuple[int, bytes]
_SPLIT, _CHANNEL, _ESCAPES = b'"split"', b'"channel"', (rb"\u006", rb"\u007")
"""What a row holds that asks for its channels apart, and what the escape of a letter in those begins with."""


class JsonlReader:
    """The rows of one JSONL manifest: each line that is not blank is one row, good or failed."""

    def __init__(self, lines: LineFile, resolver: Resolver, name: str) -> None:
        """`name` is the file's short name, used in the ids of rows that have none to read."""
        self.lines = lines
        self.resolver = resolver
        self.name = name
        self.path = self.long_name = lines.path
        self.paths: tuple[str, ...] = (lines.path,) if lines.on_disk else ()

    def entries(self) -> Iterator[Entry]:
        """(line number, line) of each row."""
        return self.lines.numbered()

    def place(self, entry: Entry) -> str:
        """`file:line` of the row."""
        return f"{self.path}:{entry[0]}"

    def row(self, entry: Entry, index: int) -> Utterance | RowFailure:
        """The row itself, or why it cannot be used."""
        number, line = entry
        fallback_id = f"{self.name}:{number}"
        parsed = parse_line(line, fallback_id)
        name = parsed.id or fallback_id
        origin = self.place(entry)
        try:
            check_length(line)
            # A row that fails must go by the id that `ids` gave for it: `line_id` takes the same steps.
            if parsed.id is None or not parsed.problem:
                place = dialect.read_place(parsed.row)
                name = parsed.id or dialect.made_id(place)
            if parsed.problem:
                raise ManifestRowError(parsed.problem)
            return self._utterance(name, place, parsed.row, index, origin)
        except ManifestRowError as error:
            return failure(name, index, origin, error, parsed.row)

    def ids(self) -> Iterator[list[str]]:
        """The ids of all rows, in order, block by block."""
        number = 1
        for block in self.lines.blocks():
            ids = plain_ids(block)
            yield self._careful_ids(block, number) if ids is None else ids
            number += len(block)

    def keys(self) -> Iterator[list[Hashable] | None]:
        """For a list of stretches without ids, see `Reader.keys`."""
        return map(plain_keys, self.lines.blocks())

    def split_ids(self) -> Iterator[str]:
        """See `Reader.split_ids`. A file without the word is not parsed: it may have millions of rows."""
        if not self.lines.mentions((_SPLIT, *_ESCAPES)):
            return
        for entry in self.entries():
            line = entry[1]
            # Both: `split` alone is a key of many lists, and names what a row is for.
            if (_SPLIT in line and _CHANNEL in line) or any(escape in line for escape in _ESCAPES):
                row = self.row(entry, 0)
                if isinstance(row, Utterance) and row.channel == "split":
                    yield row.id

    def check(self) -> None:
        """Nothing but the ids concerns the manifest as a whole."""

    def count(self) -> int:
        """Number of rows."""
        return self.lines.count()

    def sha256(self) -> str:
        """Hex digest of the file."""
        return self.lines.sha256()

    def _careful_ids(self, block: list[bytes], first: int) -> list[str]:
        numbered = enumerate(block, first)
        return [line_id(line, f"{self.name}:{number}") for number, line in numbered if not line.isspace()]

    def _utterance(
        self, name: str, place: dialect.Place, row: dict[str, Any], index: int, origin: str
    ) -> Utterance:
        dialect.check_id(row)
        language, task, prompt = dialect.read_requests(row)
        return Utterance(
            id=name,
            audio=self.resolver.resolve(place.path),
            index=index,
            offset=place.stretch.offset,
            duration=place.stretch.duration,
            channel=place.channel,
            text=dialect.read_text(row),
            language=language,
            task=task,
            prompt=prompt,
            row=row,
            origin=origin,
        )
