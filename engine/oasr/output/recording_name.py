"""What NIST's formats call a recording: one name without white space, and a channel counted from 1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from oasr.errors import OutputError
from oasr.output.rows import STRETCH_KEYS, row_id

_AUDIO_KEYS = ("audio", "audio_filepath", "wav")


def recording_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """Name and channel (counted from 1) of the recording that the row's times are times of.

    The name is the row's `recording` (Kaldi's segments have one), else the id of a row that stands for
    a whole recording, else the name of the audio file without folder and suffix: NIST wants no paths.

    Raises:
        OutputError: white space in the name.
    """
    name, channel = row_id(row) or "", _number(row.get("channel"))
    # A row that was split has its channel's number at the end of its id, too.
    if channel is not None:
        name = name.removesuffix(f"-ch{channel}") or name
    audio, stated = audio_of(row), row.get("recording")
    made = audio is not None and name.startswith(audio)  # an id that was made from the path
    if isinstance(stated, str) and stated:
        name = stated
    elif audio is not None and (made or any(row.get(key) is not None for key in STRETCH_KEYS)):
        name = PurePath(audio).stem
    if name.split() != [name]:
        raise OutputError(
            f"recording {name!r} holds white space, which divides the fields of the file: give the row "
            "a key `recording` with a name without it, or leave the format out"
        )
    return name, str(1 if channel is None else channel + 1)


def _number(channel: Any) -> int | None:
    """A channel as lists may spell it: 1, "1" and, from tables with gaps, 1.0; None = no single one."""
    if isinstance(channel, str) and channel.isascii() and channel.isdigit():
        channel = float(channel)
    if isinstance(channel, bool) or not isinstance(channel, int | float) or not 0 <= channel < 1e9:
        return None
    return int(channel) if channel == int(channel) else None


def audio_of(row: Mapping[str, Any]) -> str | None:
    """The path of the row's recording, when the row has one."""
    return next((row[key] for key in _AUDIO_KEYS if isinstance(row.get(key), str)), None)
