"""A file that only grows by whole lines: each line is written at once, or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from oasr.errors import OutputError

try:
    import fcntl
except ImportError:  # Windows: no lock, everything else works
    fcntl = None  # type: ignore[assignment]


class AppendFile:
    """An open, locked, append-only file of lines. A second opener is refused until `close`.

    The lock is `flock` on the file itself, so it dies with the process and leaves nothing behind.
    """

    def __init__(self, path: Path) -> None:
        """Open or create `path` and lock it.

        Raises:
            OutputError: another run holds it.
            OSError: it cannot be opened for writing, or is a link: what that leads to is not ours to change.
        """
        self.path = path
        self._fd = _open_locked(path)
        self.size = os.fstat(self._fd).st_size

    def append(self, line: bytes) -> int:
        """Write `line` (newline included) and return the offset where it starts.

        Raises:
            OSError: it could not be written wholly; the file is cut back to what it held before.
        """
        start, written = self.size, 0
        try:
            while written < len(line):
                written += os.write(self._fd, line[written:])
        except OSError:
            # A disk that filled up has taken part of the line; a half one must not stand before the next.
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, start)
            raise
        self.size = start + len(line)
        return start

    def drop_half_line(self) -> bool:
        """Cut off what follows the last newline (a write cut short by a kill); True when there was any."""
        # From the end, step by step: a half line is short, and the file may have millions of whole ones.
        end, step = self.size, 1 << 16
        with self.path.open("rb") as lines:
            while end > 0:
                start = max(0, end - step)
                lines.seek(start)
                newline = lines.read(end - start).rfind(b"\n")
                if newline >= 0:
                    end = start + newline + 1
                    break
                end = start
        cut = end < self.size
        self.truncate(end)
        return cut

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        if size != self.size:
            os.ftruncate(self._fd, size)
            self.size = size

    @property
    def in_place(self) -> bool:
        """False once the path no longer leads to this open file (removed, renamed, replaced)."""
        return _same_file(self._fd, self.path)

    def close(self) -> None:
        """Release the lock and the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _open_locked(path: Path) -> int:
    # O_BINARY: without it Windows would write two bytes for a line end, and offsets would be wrong.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    while True:
        fd = os.open(path, flags, 0o666)
        try:
            _lock(fd, path)
            # Whoever held the lock may have replaced the file meanwhile: then this is the old one.
            if _same_file(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _lock(fd: int, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            f"{path}: another oasr run is writing here; wait for it to end or choose another output folder"
        ) from None
    except OSError:
        pass  # a file system without locks: two runs in one folder go unnoticed, nothing else changes


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False
