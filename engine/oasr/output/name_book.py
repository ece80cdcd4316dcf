"""Which file belongs to which utterance in one output folder, remembered across runs.

`.oasr-files.jsonl` lists every file that oasr made for an utterance, as `{"id": …, "files": […]}`,
written before the file itself. It is what lets `--overwrite` remove oasr's own files and no one else's,
and what gives a resumed run the same names again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from oasr.errors import OutputError
from oasr.output.append_file import AppendFile
from oasr.output.jsonl import decode_line, encode_line
from oasr.output.names import fold, hashed_name, safe_name

RECORD_NAME = ".oasr-files.jsonl"


class NameBook:
    """Hands out file names in one folder, never one that another id or somebody else's file has.

    Holds two 64-bit numbers a file and no strings.
    """

    def __init__(self, folder: Path) -> None:
        """Read the record of earlier runs, when there is one."""
        self._folder = folder
        self._owners: dict[int, int] = {}  # folded file name → id, both as digests
        self._record: AppendFile | None = None
        for utterance_id, files in self._entries():
            self._owners.update(dict.fromkeys(map(_file_digest, files), _digest(utterance_id)))

    def claim(self, utterance_id: str, suffixes: Sequence[str]) -> list[Path]:
        """The paths of this utterance's files, one a suffix; the same ones whenever it is asked again.

        Raises:
            OutputError: none of this id's names is free.
            OSError: the record cannot be written.
        """
        chosen = self._on_record(utterance_id, suffixes)
        added = [suffix for suffix in suffixes if suffix not in chosen]
        if added:
            owner = _digest(utterance_id)
            # All files of an id have one stem where they can. Sorting is stable.
            stems = sorted(_candidates(utterance_id), key=lambda stem: stem not in chosen.values())
            free = (stem for stem in stems if all(self._is_free(stem + s, owner) for s in added))
            if (stem := next(free, None)) is None:
                raise OutputError(
                    f"{self._folder}: every file name for id {utterance_id!r} is taken by another file"
                )
            chosen |= dict.fromkeys(added, stem)
        names = [chosen[suffix] + suffix for suffix in suffixes]
        self._note(utterance_id, names)
        return [self._folder / name for name in names]

    def reserve(self, name: str) -> Path:
        """The path of a file of the whole run, `name` being its fixed name.

        Raises:
            OutputError: a file of that name is there and is not oasr's.
            OSError: the record cannot be written.
        """
        path = self._folder / name
        if not self._is_free(name, _digest("")):
            raise OutputError(
                f"{path}: this format always writes to that name, and the file there is not oasr's; "
                "move it away or choose another output folder"
            )
        self._note("", [name])
        return path

    def owns(self, name: str) -> bool:
        """Whether `name` is on record as a file of ours."""
        return _file_digest(name) in self._owners

    def remove_files(self) -> None:
        """Delete every file on record, then the record's content."""
        for _, files in self._entries():
            for name in files:
                with contextlib.suppress(FileNotFoundError):
                    (self._folder / name).unlink()
        # The record goes last: a kill before leaves files that are still known to be ours.
        self._owners.clear()
        if (self._folder / RECORD_NAME).exists():
            self._open_record().truncate(0)

    def close(self) -> None:
        """Release the record."""
        if self._record is not None:
            self._record.close()

    def _on_record(self, utterance_id: str, suffixes: Sequence[str]) -> dict[str, str]:
        """The stem of each suffix of which this id has a file on record.

        It has to stay: under another name, the file of an earlier run would stand beside the new one.
        """
        owner = _digest(utterance_id)
        found: dict[str, str] = {}
        for stem in _candidates(utterance_id):
            for suffix in suffixes:
                if self._owners.get(_file_digest(stem + suffix)) == owner:
                    found.setdefault(suffix, stem)
            if len(found) == len(suffixes):
                break
        return found

    def _note(self, utterance_id: str, names: Sequence[str]) -> None:
        new = [name for name in names if _file_digest(name) not in self._owners]
        if new:
            # On record first: a kill before the file is made leaves a name without a file, never a file that
            # nobody owns.
            self._open_record().append(encode_line({"id": utterance_id, "files": new}))
            self._owners.update(dict.fromkeys(map(_file_digest, new), _digest(utterance_id)))

    def _is_free(self, name: str, owner: int) -> bool:
        known = self._owners.get(_file_digest(name))
        if known is not None:
            return known == owner
        # A link that leads nowhere is somebody's, too.
        return not os.path.lexists(self._folder / name)

    def _open_record(self) -> AppendFile:
        if self._record is None:
            self._record = AppendFile(self._folder / RECORD_NAME)
            self._record.drop_half_line()
        return self._record

    def _entries(self) -> Iterator[tuple[str, list[str]]]:
        """(id, file names) of every readable line; a name that would leave the folder is no entry."""
        try:
            lines = (self._folder / RECORD_NAME).open("rb")
        except FileNotFoundError:
            return
        with lines:
            for line in lines:
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    entry = decode_line(line)
                    files = [str(name) for name in entry["files"]]
                    yield str(entry["id"]), [name for name in files if _is_plain(name)]


def _is_plain(name: str) -> bool:
    return Path(name).name == name and name not in ("", ".", "..")


def _candidates(utterance_id: str) -> Iterator[str]:
    yield safe_name(utterance_id)
    for digits in (10, 24, 64):
        yield hashed_name(utterance_id, digits)


def _file_digest(name: str) -> int:
    return _digest(fold(name))


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
