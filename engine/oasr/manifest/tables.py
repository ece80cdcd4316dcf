"""A Kaldi table, `key value...` a line, looked up by key without holding it."""

from __future__ import annotations

import io
import weakref
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from oasr.errors import ManifestError, ManifestRowError
from oasr.manifest.lines import LONGEST_LINE, LineFile, bounded_blocks, is_cut

if TYPE_CHECKING:
    import numpy as np


class KeyedTable:
    """Finds the line of a key through the sorted hashes of all keys: 16 bytes a line in memory.

    The index is built by one pass at the first use; a table need not be sorted. Not to be shared
    between threads.
    """

    def __init__(self, lines: LineFile) -> None:
        """`lines` is the table's file."""
        self.lines = lines
        self.name = Path(lines.path).name

    def get(self, key: bytes) -> bytes | None:
        """The value of `key` without the blanks around it; None when the table has no such line.

        Raises:
            ManifestRowError: the table has the key twice.
        """
        found = list(self._matches(key))
        if len(found) > 1:
            lines = " and ".join(str(self._line_number(start)) for start, _ in found[:2])
            raise ManifestRowError(
                f"{self.name} has {key.decode(errors='replace')} in lines {lines}; keep one"
            )
        return found[0][1] if found else None

    def get_text(self, key: bytes) -> str | None:
        """`get`, as text.

        Raises:
            ManifestRowError: the table has the key twice, or its value is not UTF-8.
        """
        value = self.get(key)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError as error:
            shown = key.decode(errors="replace")
            raise ManifestRowError(f"{self.name}: expected UTF-8 for {shown}, found {value!r}") from error

    def _matches(self, key: bytes) -> Iterator[tuple[int, bytes]]:
        """(byte offset, value) of each line with this key, in file order."""
        hashes, starts = self._index
        wanted = hash(key)
        at = int(hashes.searchsorted(wanted))
        while at < len(hashes) and hashes[at] == wanted:
            self._file.seek(int(starts[at]))
            # Two keys may share a hash, so the line itself is asked.
            fields = self._file.readline(LONGEST_LINE).split(None, 1)
            if fields and fields[0] == key:
                yield int(starts[at]), fields[1].rstrip() if len(fields) > 1 else b""
            at += 1

    def _line_number(self, start: int) -> int:
        with self.lines.open() as file:
            number = 1
            while file.tell() < start:
                file.readline()
                number += 1
        return number

    @cached_property
    def _file(self) -> io.BufferedReader:
        file = self.lines.open()
        weakref.finalize(self, file.close)
        return file

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) key hashes, ascending, and (n,) byte offsets of their lines; int64 both."""
        import numpy as np

        hashes, starts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        with self.lines.open() as file:
            end = file.tell()  # behind the byte-order mark
            for block in bounded_blocks(file):
                if any(map(is_cut, block)):
                    raise ManifestError(
                        f"{self.lines.path}: expected lines of at most {LONGEST_LINE >> 20} MiB, found a "
                        "longer one; is this one of Kaldi's tables?"
                    )
                # A blank line has an empty key, which nobody looks up: so every line has its place here.
                keys = ((line.split(None, 1) or [b""])[0] for line in block)
                ends = end + np.cumsum(np.fromiter(map(len, block), np.int64, len(block)))
                hashes.append(np.fromiter(map(hash, keys), np.int64, len(block)))
                starts.append(np.concatenate(([end], ends[:-1])))
                end = int(ends[-1])
        joined = np.concatenate(hashes)
        # Stable: lines of one key keep the order of the file, in which messages name them.
        order = np.argsort(joined, kind="stable")
        return joined[order], np.concatenate(starts)[order]
