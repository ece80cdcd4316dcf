"""One line of a JSONL manifest: bytes → keys and an id, or what is wrong with it. Never raises."""

from __future__ import annotations

import codecs
from collections.abc import Hashable
from typing import Any, NamedTuple

import msgspec

from oasr.errors import ManifestRowError
from oasr.manifest import dialect, lenient_json

_UNDECODABLE = (msgspec.MsgspecError, ValueError, RecursionError)  # the last is for nesting that is too deep


# gc=False: texts and numbers form no cycles, and the collector need not track millions of these.
class _Head(msgspec.Struct, gc=False):
    """The keys that state an id; skipping the others makes the search for duplicates fast."""

    id: str | int | None = None
    key: str | int | None = None


class _Unnamed(msgspec.Struct, gc=False):
    """A row in its plainest form that states no id; anything else fails to decode as one."""

    id: None = None
    key: None = None
    start: None = None
    end: None = None
    channel: None = None
    audio: str | None = None
    audio_filepath: str | None = None
    wav: str | None = None
    offset: float | None = None
    duration: float | None = None


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_unnamed = msgspec.json.Decoder(_Unnamed).decode
_decode = msgspec.json.Decoder().decode


class ParsedLine(NamedTuple):
    """One line: its keys, the id that it states, and why it is no usable JSON object (or None).

    `id` is None for a row whose id has to be made.
    """

    id: str | None
    row: dict[str, Any]
    problem: str | None = None


def parse_line(line: bytes, fallback_id: str) -> ParsedLine:
    """Read `line`; one in which no id can be trusted goes by `fallback_id`."""
    if lenient_json.is_crowded(line):
        return _parse_refused(line, fallback_id)
    try:
        row = _decode(line)
    except _UNDECODABLE:
        return _parse_refused(line, fallback_id)
    if not isinstance(row, dict):
        return ParsedLine(fallback_id, {}, lenient_json.not_an_object(row))
    # Each key brings a colon, so with no more colons than keys no key can have come twice.
    problem = None if line.count(b":") == len(row) else lenient_json.repeated_key(line.decode())
    return ParsedLine(_stated_id(row, fallback_id), row, problem)


def line_id(line: bytes, fallback_id: str) -> str:
    """The id by which the row of `line` goes, made or stated."""
    if lenient_json.is_crowded(line):
        return _parse_refused(line, fallback_id).id or fallback_id
    try:
        row = _decode(line)
    except _UNDECODABLE:
        name, row, _ = _parse_refused(line, fallback_id)
        if name is not None:
            return name
    if not isinstance(row, dict):
        return fallback_id
    try:
        return dialect.stated_id(row) or dialect.made_id(dialect.read_place(row))
    except ManifestRowError:
        return fallback_id


def plain_ids(lines: list[bytes]) -> list[str] | None:
    """What `line_id` gives for `lines`, fast, when all of them have the same plain form; else None."""
    try:
        if b'"id"' not in lines[0] and b'"key"' not in lines[0]:
            return _unnamed_ids(list(map(_decode_unnamed, lines)))
        heads = list(map(_decode_head, lines))
        ids = [head.id if head.id is not None else head.key for head in heads]
        # The usual case, without a call of Python's for each row; integers, too, are ids.
        if set(map(type, ids)) == {str} and "" not in ids:
            return ids  # type: ignore[return-value]
        return [dialect.id_text("id", value) for value in ids]
    except (*_UNDECODABLE, ManifestRowError):
        return None


def plain_keys(lines: list[bytes]) -> list[Hashable] | None:
    """Values that are equal exactly where the `plain_ids` of rows with a made id are; None for other rows.

    Writing out the seconds of a made id costs more than all the rest of the search for duplicates.
    """
    if not lines or b'"id"' in lines[0] or b'"key"' in lines[0]:
        return None
    try:
        paths, *times = _unnamed_columns(list(map(_decode_unnamed, lines)))
    except (*_UNDECODABLE, ManifestRowError):
        return None
    # Without times the ids are the paths themselves, and cost no more than keys.
    return list(zip(paths, *times, strict=True)) if times else None


def _unnamed_ids(rows: list[_Unnamed]) -> list[str]:
    """What `dialect.made_id` gives for plain rows; ManifestRowError as `_unnamed_columns`."""
    ids, *times = _unnamed_columns(rows)
    for mark, seconds in zip("@+", times, strict=False):
        ids = [f"{name}{mark}{dialect.spell(value)}" for name, value in zip(ids, seconds, strict=True)]
    return ids


def _unnamed_columns(rows: list[_Unnamed]) -> list[list[Any]]:
    """What the ids of plain rows are made from: paths, then offsets, then durations, where there are any.

    Raises:
        ManifestRowError: the rows do not all give the same fields, or one needs a closer look.
    """
    columns = [[r.audio for r in rows], [r.audio_filepath for r in rows], [r.wav for r in rows]]
    paths = [column for column in map(_filled, columns) if column]
    offsets, durations = _filled([r.offset for r in rows]), _filled([r.duration for r in rows])
    times = offsets + durations or [0.0]
    # Beside an offset a duration of 0 fails its row; without one, durations are no part of an id.
    plain_times = 0 <= min(times) <= max(times) <= dialect.MAX_SECONDS and not (offsets and 0 in durations)
    if len(paths) != 1 or "" in paths[0] or "\0" in "".join(paths[0]) or not plain_times:
        raise ManifestRowError("needs a closer look")
    columns = [paths[0], offsets, durations] if offsets else [paths[0]]
    return [column for column in columns if column]


def _filled(column: list[Any]) -> list[Any]:
    """`column` when all rows give the field, an empty list when none does; ManifestRowError in between."""
    missing = column.count(None)
    if 0 < missing < len(column):
        raise ManifestRowError("needs a closer look")
    return [] if missing else column


def _parse_refused(line: bytes, fallback_id: str) -> ParsedLine:
    """A line that strict JSON refuses: still good where nothing of ours is hit, else a failed row."""
    start = 0
    while line.startswith(codecs.BOM_UTF8, start):  # files joined with `cat` bring their marks along
        start += len(codecs.BOM_UTF8)
    if start:
        return parse_line(line[start:], fallback_id)
    row, problem = lenient_json.read(line)
    # msgspec passes over the values of other keys unread: bytes there that are no UTF-8 hide no id.
    name = _head_id(line) or _stated_id(row, fallback_id)
    if problem and name is None:
        name = _plain_id(line)
    # An id with bytes replaced is not the row's own, and two rows could come to share it.
    if problem and (name is None or lenient_json.REPLACEMENT in name):
        name = fallback_id
    return ParsedLine(name, row, problem)


def _head_id(line: bytes) -> str | None:
    try:
        head = _decode_head(line)
    except _UNDECODABLE:
        return None
    return _stated_id({"id": head.id, "key": head.key}, None)


def _plain_id(line: bytes) -> str | None:
    """The id that `plain_ids` makes for a row that states none, whatever its other keys hold."""
    try:
        return _unnamed_ids([_decode_unnamed(line)])[0]
    except (*_UNDECODABLE, ManifestRowError):
        return None


def _stated_id(row: dict[str, Any], fallback_id: str | None) -> str | None:
    try:
        return dialect.stated_id(row)
    except ManifestRowError:
        return fallback_id
