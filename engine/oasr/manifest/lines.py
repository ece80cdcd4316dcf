"""A text file as numbered byte lines, readable any number of times in constant memory."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import IO

from oasr.errors import ManifestError, ManifestRowError

BLOCK_LINES = 4096
LONGEST_LINE = 16 << 20
"""Bytes. A row with the words of a day of speech has less; a file with a longer line is no list of rows, and
the line might take all memory."""
_BLOCK_BYTES = 32 << 20
_READ_BYTES = 1 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class LineFile:
    """Numbered lines of a file on disk, or of a stream that was spooled first.

    Lines are bytes with their line end; numbers start at 1 and count blank lines, so they are the
    numbers an editor shows. A byte-order mark at the start of the file is no part of line 1.
    """

    def __init__(self, path: str, spooled: IO[bytes] | None = None) -> None:
        """`path` is what messages call the file; `spooled` holds the bytes when it is no real file.

        Raises:
            ManifestError: the file cannot be read, or is UTF-16.
        """
        self.path = path
        self.on_disk = spooled is None
        if spooled is not None:
            # It has no name, so closing it is what gives the disk its space back.
            weakref.finalize(self, spooled.close)
        self._spooled = spooled
        with self.open() as file:
            if file.peek(2)[:2] in _UTF16:
                raise ManifestError(
                    f"{path}: expected UTF-8, found UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {path}"
                )

    def open(self) -> io.BufferedReader:
        """A fresh reader that stands behind the byte-order mark, if there is one."""
        try:
            file = self._reader()
            if file.peek(3)[:3] == codecs.BOM_UTF8:
                file.seek(3)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return file

    def blocks(self) -> Iterator[list[bytes]]:
        """All lines, blank ones too, in lists of at most BLOCK_LINES and not much more than 32 MiB."""
        try:
            with self.open() as file:
                yield from bounded_blocks(file)
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """(line number, line) of every line that is not blank."""
        try:
            with self.open() as file:
                for number, line in enumerate(bounded_lines(file), 1):
                    if not line.isspace():
                        yield number, line
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def count(self) -> int:
        """How many lines are not blank."""
        return sum(len(block) - sum(map(bytes.isspace, block)) for block in self.blocks())

    def mentions(self, words: Sequence[bytes]) -> bool:
        """Whether one of `words` is anywhere in the file; a fraction of what looking at each line costs."""
        reach, tail = max(map(len, words)) - 1, b""
        try:
            with self._reader() as file:
                while data := file.read(_READ_BYTES):
                    seen = tail + data
                    if any(word in seen for word in words):
                        return True
                    # A word may begin in one read and end in the next.
                    tail = seen[-reach:] if reach else b""
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return False

    def sha256(self) -> str:
        """Hex digest of the file's bytes, mark and all: what `sha256sum` prints."""
        digest = hashlib.sha256()
        try:
            with self._reader() as file:
                while data := file.read(_READ_BYTES):
                    digest.update(data)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return digest.hexdigest()

    def _reader(self) -> io.BufferedReader:
        raw = io.FileIO(self.path) if self._spooled is None else _Window(self._spooled)
        return io.BufferedReader(raw, _READ_BYTES)


def bounded_blocks(file: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines of `file` in lists, see `LineFile.blocks`."""
    block: list[bytes] = []
    held = 0
    for line in bounded_lines(file):
        block.append(line)
        held += len(line)
        if len(block) == BLOCK_LINES or held > _BLOCK_BYTES:
            yield block
            block, held = [], 0
    if block:
        yield block


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of `file`; of one that is too long its first LONGEST_LINE bytes, see `is_cut`."""
    while line := file.readline(LONGEST_LINE):
        if is_cut(line):
            while is_cut(file.readline(LONGEST_LINE)):
                pass
            # With a NUL at its end it is neither blank nor, whatever was cut off, a whole row.
            line = line[:-1] + b"\0"
        yield line


def is_cut(line: bytes) -> bool:
    """Whether `line` is only the start of a line that is too long."""
    return len(line) >= LONGEST_LINE and not line.endswith(b"\n")


def check_length(line: bytes) -> None:
    """Raise ManifestRowError for the start of a line that is too long."""
    if is_cut(line):
        raise ManifestRowError(
            f"expected a line of at most {LONGEST_LINE >> 20} MiB, found a longer one; is it a list of rows?"
        )


def spool(stream: IO[bytes], name: str) -> IO[bytes]:
    """Copy `stream` into an unnamed temporary file, so that it can be read more than once.

    The file has no name, so nothing is left behind however the run ends.
    """
    try:
        copy = tempfile.TemporaryFile(prefix="oasr-")  # noqa: SIM115 - lives as long as its LineFile
        while data := stream.read(_READ_BYTES):
            copy.write(data)
        # Readers go to the descriptor, past the buffer of this object.
        copy.flush()
    except OSError as error:
        raise ManifestError(
            f"{name}: cannot be copied to {tempfile.gettempdir()}: {error.strerror or error}; "
            "make room there or point TMPDIR elsewhere"
        ) from error
    return copy


class _Window(io.RawIOBase):
    """An independent read position on an open file that has no name to open it by again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._position = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {
            os.SEEK_SET: 0,
            os.SEEK_CUR: self._position,
            os.SEEK_END: os.fstat(self._file.fileno()).st_size,
        }
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        # pread leaves the position of the file alone, which all passes over it share.
        data = os.pread(self._file.fileno(), len(buffer), self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _unreadable(path: str, error: OSError) -> ManifestError:
    return ManifestError(f"{path}: cannot be read: {error.strerror or error}")
