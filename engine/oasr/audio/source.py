"""Where the bytes of a recording come from: a regular file, a named pipe, or a shell command.

What comes through a pipe goes into an unnamed temporary file (TMPDIR says where): decoders seek, and an hour
of samples has no place in memory.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import tempfile
import threading
import time
from typing import IO

from oasr.audio.streams import ReadCancelledError
from oasr.errors import AudioError
from oasr.types import Utterance

_POLL_S = 0.1
_WRITER_S = 10.0
"""How long a named pipe may be without a writer; once there is one, it may take its time."""


def open_source(utterance: Utterance, allow_pipes: bool, cancel: threading.Event | None) -> IO[bytes]:
    """A seekable binary file with the recording of `utterance`.

    Raises:
        AudioError: nothing there, a folder, no permission, 0 bytes, or a command that may not run or fails.
        ReadCancelledError: `cancel` was set while a command ran or a pipe was read.
    """
    if utterance.command is not None:
        if not allow_pipes:
            raise AudioError(
                f"the audio comes from a shell command ({utterance.command!r}), "
                "and commands are run with --allow-pipes only"
            )
        return _run(utterance.command, cancel)
    return _open_path(utterance.audio, cancel)


def _open_path(path: str, cancel: threading.Event | None) -> IO[bytes]:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (a Path would refuse nothing and cost a copy)
        if stat.S_ISDIR(mode):
            raise AudioError("expected an audio file, found a folder")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise AudioError("expected an audio file, found a device or socket")
        if stat.S_ISFIFO(mode):
            return _read_pipe(path, cancel)
        return open(path, "rb", buffering=0)  # noqa: PTH123 (closed by the caller)
    except OSError as error:
        raise AudioError(f"cannot be opened: {error.strerror or error}") from None
    except ValueError as error:
        raise AudioError(f"{path!r} cannot be a path: {error}") from None


def _read_pipe(path: str, cancel: threading.Event | None) -> IO[bytes]:
    """All that comes out of a named pipe. An ordinary open would wait for a writer without end."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    copy = _copy()
    try:
        writer, give_up = False, time.monotonic() + _WRITER_S
        while not (cancel is not None and cancel.is_set()):
            try:
                data = os.read(fd, 1 << 20)
            except BlockingIOError:  # somebody holds the other end and has nothing to say yet
                writer = True
                select.select([fd], [], [], _POLL_S)
                continue
            if data:
                writer = True
                left = memoryview(data)
                while left:  # an unbuffered file may take less than it is given
                    left = left[copy.write(left) :]
            # Nothing to read, and no wait for it either: nobody holds the other end, not yet or no more.
            elif writer:
                copy.seek(0)
                return copy
            elif time.monotonic() > give_up:
                raise AudioError(f"expected an audio file, found a pipe without a writer for {_WRITER_S:g} s")
            else:
                time.sleep(_POLL_S / 10)
        raise ReadCancelledError
    except BaseException:
        copy.close()
        raise
    finally:
        os.close(fd)


def _copy() -> IO[bytes]:
    """An unbuffered temporary file, which libsndfile can read by its descriptor."""
    return tempfile.TemporaryFile(buffering=0)


def _run(command: str, cancel: threading.Event | None) -> IO[bytes]:
    """Standard output of `command`; its whole process group is killed on cancel."""
    copy = _copy()
    try:
        _run_into(copy, command, cancel)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy


def _run_into(copy: IO[bytes], command: str, cancel: threading.Event | None) -> None:
    process = subprocess.Popen(
        command,
        shell=True,
        # A command that reads what is typed, as ffmpeg does, would take it from the terminal of the run.
        stdin=subprocess.DEVNULL,
        stdout=copy,
        stderr=subprocess.PIPE,
        # A group of its own: killing the shell alone would leave the commands that it started.
        start_new_session=True,
    )
    while True:
        try:
            _, err = process.communicate(timeout=_POLL_S)
            break
        except subprocess.TimeoutExpired:
            if cancel is not None and cancel.is_set():
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise ReadCancelledError from None
    if process.returncode != 0:
        # Programs say at the end what went wrong.
        tail = " ".join(err.decode(errors="replace").split())[-300:] or "nothing on stderr"
        raise AudioError(f"the command {command!r} failed with exit status {process.returncode}: {tail}")
    if not os.fstat(copy.fileno()).st_size:
        raise AudioError(f"the command {command!r} wrote 0 bytes")
