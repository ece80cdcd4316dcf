"""Recordings named outright: a file on the command line, or all files of a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

from oasr.errors import ManifestRowError
from oasr.manifest.lines import BLOCK_LINES
from oasr.manifest.paths import readable_path
from oasr.manifest.reader import failure
from oasr.types import RowFailure, Utterance


class FileReader:
    """One row for each of `files`; the id is the path as a shell would write it.

    A folder's listing is taken once, when the list is opened, and held, so that recordings which
    arrive during a run cannot shift the numbers of the others.
    """

    def __init__(self, path: str, files: Sequence[str]) -> None:
        """`path` is the input as given, `files` what it stands for."""
        self.name = self.long_name = self.path = path
        self.paths: tuple[str, ...] = (path,)
        self._files = files

    def entries(self) -> Iterator[str]:
        """The paths, in order."""
        return iter(self._files)

    def place(self, entry: str) -> str:
        """The path, and which input brought it along."""
        name = readable_path(entry)
        return name if entry == self.path else f"{name} (found through {readable_path(self.path)})"

    def row(self, entry: str, index: int) -> Utterance | RowFailure:
        """The whole recording as one row; whether it can be read is the audio reader's to find out."""
        name = readable_path(entry)
        return Utterance(id=name, audio=entry, index=index, row={"id": name, "audio": name}, origin=name)

    def ids(self) -> Iterator[list[str]]:
        """The ids in blocks."""
        names = map(readable_path, self._files)
        while block := list(islice(names, BLOCK_LINES)):
            yield block

    def keys(self) -> Iterator[list[Hashable] | None]:
        """None: the ids are cheap as they are."""
        return iter((None,))

    def split_ids(self) -> Iterator[str]:
        """None: only the run as a whole can ask for channels apart."""
        return iter(())

    def check(self) -> None:
        """Nothing to check before the recordings are opened."""

    def count(self) -> int:
        """Number of recordings."""
        return len(self._files)

    def sha256(self) -> str:
        """Hex digest of the ids, one a line: what is in the list, not what is in the recordings."""
        digest = hashlib.sha256()
        for block in self.ids():
            digest.update("".join(f"{name}\n" for name in block).encode())
        return digest.hexdigest()


class EmptyFolderReader(FileReader):
    """A folder that a glob matched and that holds no recording: one failed row instead of none."""

    def __init__(self, path: str) -> None:
        """`path` is the folder."""
        super().__init__(path, [path])

    def row(self, entry: str, index: int) -> Utterance | RowFailure:
        """The row that says so."""
        name = readable_path(entry)
        error = ManifestRowError("expected a recording, found a folder without any")
        return failure(name, index, name, error, {"id": name, "audio": name})
