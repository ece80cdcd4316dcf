"""Where the bytes of a recording come from: a regular file, a named pipe, or a shell command."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
from io import BytesIO
from typing import IO

from oasr.audio.streams import ReadCancelledError
from oasr.errors import AudioError
from oasr.types import Utterance

_POLL_S = 0.1


def open_source(utterance: Utterance, allow_pipes: bool, cancel: threading.Event | None) -> IO[bytes]:
    """A seekable binary file with the recording of `utterance`.

    Raises:
        AudioError: nothing there, a folder, no permission, 0 bytes, or a command that may not run or fails.
        ReadCancelledError: `cancel` was set while a command ran.
    """
    if utterance.command is not None:
        if not allow_pipes:
            raise AudioError(
                f"the audio comes from a shell command ({utterance.command!r}), "
                "and commands are run with --allow-pipes only"
            )
        return BytesIO(_run(utterance.command, cancel))
    return _open_path(utterance.audio)


def _open_path(path: str) -> IO[bytes]:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (a Path would refuse nothing and cost a copy)
        if stat.S_ISDIR(mode):
            raise AudioError("expected an audio file, found a folder")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise AudioError("expected an audio file, found a device or socket")
        file = open(path, "rb", buffering=0)  # noqa: PTH123, SIM115 (closed by the caller)
    except OSError as error:
        raise AudioError(f"cannot be opened: {error.strerror or error}") from None
    except ValueError as error:
        raise AudioError(f"{path!r} cannot be a path: {error}") from None
    if stat.S_ISFIFO(mode):
        with file:
            return BytesIO(file.readall())
    return file


def _run(command: str, cancel: threading.Event | None) -> bytes:
    """Standard output of `command`; its whole process group is killed on cancel."""
    process = subprocess.Popen(
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while True:
        try:
            out, err = process.communicate(timeout=_POLL_S)
            break
        except subprocess.TimeoutExpired:
            if cancel is not None and cancel.is_set():
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise ReadCancelledError from None
    if process.returncode != 0:
        tail = " ".join(err.decode(errors="replace").split())[-300:] or "nothing on stderr"
        raise AudioError(f"the command {command!r} failed with exit status {process.returncode}: {tail}")
    if not out:
        raise AudioError(f"the command {command!r} wrote 0 bytes")
    return out
