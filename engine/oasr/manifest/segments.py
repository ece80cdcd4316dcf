"""The fields of Kaldi's `segments` and `reco2file_and_channel` lines."""

from __future__ import annotations

from dataclasses import dataclass

from oasr.errors import ManifestRowError
from oasr.manifest.dialect import MAX_SECONDS, NUMBER

_CHANNEL_DIGITS = 9
TO_THE_END = -1.0
"""End time by which `segments` means the end of the recording."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The stretch of one row: recording id, seconds, channel number from 0."""

    recording: bytes
    offset: float = 0.0
    duration: float | None = None
    channel: int | None = None


def parse_segment(rest: bytes) -> Segment:
    """`<recording> <start> <end> [<channel>]`, what follows the utterance id.

    Raises:
        ManifestRowError: fields are missing or too many, or a time or channel cannot be meant.
    """
    fields = rest.split()
    if not 3 <= len(fields) <= 4:
        shown = rest.decode(errors="replace")
        raise ManifestRowError(
            f"expected <id> <recording> <start> <end> [<channel>], found {shown!r} after the id"
        )
    start, end = _number("start", fields[1]), _number("end", fields[2])
    if start < 0 or (end != TO_THE_END and end <= start):
        raise ManifestRowError(f"expected 0 <= start < end, or end -1, found start {start:g} and end {end:g}")
    channel = _segment_channel(fields[3]) if len(fields) == 4 else None
    # To whole microseconds: the row carries it, and a difference of floats has stray digits.
    return Segment(fields[0], start, None if end == TO_THE_END else round(end - start, 6), channel)


def channel_of(value: str) -> int:
    """Channel number from 0 of a `reco2file_and_channel` value: `<file> A` or `1` → 0, `B` or `2` → 1.

    Raises:
        ManifestRowError: the channel is neither a letter nor a number from 1.
    """
    name = value.split()[-1] if value.split() else ""
    if len(name) == 1 and "A" <= name.upper() <= "Z":
        return ord(name.upper()) - ord("A")
    if _is_number(name) and int(name) >= 1:
        return int(name) - 1
    raise ManifestRowError(f"reco2file_and_channel: expected channel A, B, ... or 1, 2, ..., found {value!r}")


def _segment_channel(field: bytes) -> int:
    """The extra column of `segments`, which counts from 0; letters count A, B, ..."""
    name = field.decode(errors="replace").upper()
    if len(name) == 1 and "A" <= name <= "Z":
        return ord(name) - ord("A")
    if not _is_number(name):
        raise ManifestRowError(f"segments: expected channel 0, 1, ... or A, B, ..., found {name!r}")
    return int(name)


def _is_number(name: str) -> bool:
    # int() refuses thousands of digits with an error of its own, and no recording has a billion channels.
    return name.isascii() and name.isdigit() and len(name) <= _CHANNEL_DIGITS


def _number(name: str, field: bytes) -> float:
    text = field.decode(errors="replace")
    if not NUMBER.fullmatch(text):
        raise ManifestRowError(f"{name}: expected seconds, found {text!r}")
    value = float(text)
    if value > MAX_SECONDS:
        raise ManifestRowError(f"{name}: expected seconds from 0 to {MAX_SECONDS:g}, found {text!r}")
    return value
