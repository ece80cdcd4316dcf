"""The meaning of a JSONL row: which keys say what, in every dialect, and how values are checked.

Three dialects are read and may be mixed: NeMo (`audio_filepath, offset, duration, text`), WeNet
(`key, wav, txt, start, end`) and our own (`id, audio, text`). `null` means "not given" for every
key. Two keys of one meaning may both be there when they agree; else the row fails, naming both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import eq
from typing import Any, NamedTuple

from oasr.errors import ManifestRowError

ID_KEYS = ("id", "key")
AUDIO_KEYS = ("audio", "audio_filepath", "wav")
TEXT_KEYS = ("text", "txt")
LANGUAGE_KEYS = ("language", "lang")
OFFSET_KEYS = ("offset", "start")
KNOWN_KEYS = frozenset(
    (
        *ID_KEYS,
        *AUDIO_KEYS,
        *TEXT_KEYS,
        *LANGUAGE_KEYS,
        *OFFSET_KEYS,
        "duration",
        "end",
        "channel",
        "task",
        "prompt",
    )
)
# What JSON writes, and people: float() alone would also take 1_5, nan and the digits of other scripts.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_AGREE_S = 1e-3  # lists give seconds with three decimals, as a rule
_ID_BITS = 1024  # 309 digits; str() refuses thousands of them with an error of its own
_CHANNEL_DIGITS = 9  # int() refuses thousands of them with an error of its own
MAX_SECONDS = 1e9
"""Three decades: beyond it a value is no position in a recording but a time stamp or a mistake."""

Row = Mapping[str, Any]


class Stretch(NamedTuple):
    """Which part of a recording a row means, in seconds; `given` when it names a start or an end."""

    offset: float = 0.0
    duration: float | None = None
    given: bool = False


class Place(NamedTuple):
    """Recording, stretch and channel: what a row is about, and what its id is made from."""

    path: str
    stretch: Stretch
    channel: int | str | None


def id_text(key: str, value: Any) -> str:
    """An id as text: a string that is not empty, or an integer in decimal."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _ID_BITS:
        return str(value)
    raise ManifestRowError(f"{key}: expected a string that is not empty, or an integer, found {brief(value)}")


def stated_id(row: Row) -> str | None:
    """The id that the row states, by precedence alone; None when it states none."""
    # Whether two ids agree is for `check_id`: the row that fails over it still goes by the first.
    for key in ID_KEYS:
        value = row.get(key)
        if value is not None:
            return id_text(key, value)
    return None


def check_id(row: Row) -> None:
    """Refuse two ids that disagree."""
    _pick(row, ID_KEYS, id_text)


def made_id(place: Place) -> str:
    """The id of a row that states none: the path as written, with stretch and channel when given.

    `a/x.wav`, `a/x.wav@12.500`, `a/x.wav@12.500+3.000`, `a/x.wav#1`. It depends on nothing but
    the row, so it survives reordering; the suffix stays, so `x.wav` and `x.mp3` differ.
    """
    name, stretch, channel = place
    if stretch.given:
        name += "@" + spell(stretch.offset)
        if stretch.duration is not None:
            name += "+" + spell(stretch.duration)
    return name if channel is None else f"{name}#{channel}"


def read_place(row: Row) -> Place:
    """Recording, stretch and channel of `row`."""
    return Place(read_path(row), read_stretch(row), read_channel(row))


def read_path(row: Row) -> str:
    """The recording's path as the row writes it."""
    path = _pick(row, AUDIO_KEYS, _string)
    if path is None:
        raise ManifestRowError(f"no recording named; expected one of the keys {', '.join(AUDIO_KEYS)}")
    # Python refuses a NUL by a ValueError, where a file that is not there gives an OSError.
    if not path or "\0" in path:
        raise ManifestRowError(f"expected the path of a recording, found {brief(path)}")
    return path


def read_stretch(row: Row) -> Stretch:
    """Offset and duration in seconds, from `offset`/`start` and `duration`/`end`.

    A duration of 0 beside a start or an end is an empty stretch and is refused; alone it is what
    tools write when they have not measured the file, and counts as not given.
    """
    offset = _pick(row, OFFSET_KEYS, _seconds, _close)
    duration = None if row.get("duration") is None else _seconds("duration", row["duration"])
    end = None if row.get("end") is None else _seconds("end", row["end"])
    begin = offset or 0.0
    if end is not None:
        # To whole microseconds: a difference of floats (0.3 - 0.1) has stray digits, which an id would show.
        length = round(end - begin, 6)
        if length <= 0:
            raise ManifestRowError(f"end: expected seconds after the start at {begin:g}, found {end:g}")
        if duration is not None and not _close(duration, length):
            raise ManifestRowError(f"duration and end disagree: {duration:g} s, but {begin:g} to {end:g} s")
        duration = length if duration is None else duration
    # A duration alone is, in most lists, the length of the whole recording: it names no stretch.
    given = offset is not None or end is not None
    if duration == 0 and given:
        raise ManifestRowError("duration: expected seconds > 0 for a stretch with an offset, found 0")
    return Stretch(begin, duration or None, given)


def read_channel(row: Row) -> int | str | None:
    """A channel number from 0, "mix", "split", or None."""
    value = row.get("channel")
    if value is None or value in ("mix", "split"):
        return value
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _CHANNEL_DIGITS
    number = int(value) if digits else value
    # 1.0 is what pandas writes for 1 in a column with gaps.
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ManifestRowError(f"channel: expected 0, 1, ..., mix or split, found {brief(value)}")
    return number


def read_text(row: Row) -> str | None:
    """The reference transcript; "" is a reference too."""
    return _pick(row, TEXT_KEYS, _string)


def read_requests(row: Row) -> tuple[str | None, str | None, str | None]:
    """Language, task and prompt, which override the run's; "" as language or task means not given."""
    language = _pick(row, LANGUAGE_KEYS, _string) or None
    task = _pick(row, ("task",), _string) or None
    if task not in (None, "transcribe", "translate"):
        raise ManifestRowError(f"task: expected transcribe or translate, found {brief(task)}")
    return language, task, _pick(row, ("prompt",), _string)


def brief(value: object) -> str:
    """`value` for a message: its repr, cut short, with its type where the repr hides it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _pick(
    row: Row, keys: tuple[str, ...], read: Callable[[str, Any], Any], same: Callable[[Any, Any], bool] = eq
) -> Any:
    """The value under the first of `keys` that is given; the others must agree with it."""
    first, value = "", None
    for key in keys:
        raw = row.get(key)
        if raw is None:
            continue
        found = read(key, raw)
        if value is None:
            first, value = key, found
        elif not same(value, found):
            both = f"{brief(row[first])} and {brief(raw)}"
            raise ManifestRowError(f"{first} and {key} mean the same and disagree: {both}; keep one of them")
    return value


def _string(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ManifestRowError(f"{key}: expected a string, found {brief(value)}")
    return value


def _seconds(key: str, value: Any) -> float:
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        number: Any = float(value)
    else:
        number = value
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise ManifestRowError(f"{key}: expected seconds as a number, found {brief(value)}")
    if not 0 <= number <= MAX_SECONDS:
        raise ManifestRowError(f"{key}: expected seconds from 0 to {MAX_SECONDS:g}, found {brief(value)}")
    return float(number)


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= _AGREE_S


def spell(seconds: float) -> str:
    """At least three decimals, and as many as it takes to lose nothing: 12.5 → `12.500`."""
    # repr gives the shortest text that reads back as the same float.
    text = repr(seconds)
    return text + "000"[len(text) - text.find(".") - 1 :]
