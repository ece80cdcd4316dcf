"""Lines that strict JSON refuses: what can be saved of them, and what is wrong, in plain words."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from oasr.manifest import dialect

REPLACEMENT = "\ufffd"
_ARRAY_HINT = "; if the file is one JSON array, turn it into lines: jq -c '.[]'"
MOST_NESTED, MOST_LENIENT = 200_000, 100_000
"""Arrays and objects on a line, and on one that only Python's parser reads: each costs some microseconds, and
a line may be long enough for millions of them."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def read(line: bytes) -> tuple[dict[str, Any], str | None]:
    """(keys, problem) of a line; the keys are such that JSON in UTF-8 can carry them.

    Python's json module writes NaN, Infinity and lone surrogates, which the results cannot
    carry. Under a key that means nothing here they become null and U+FFFD, and there is no
    problem; under one of ours they fail the row.
    """
    problem = None
    if (nested := _nested(line)) > MOST_LENIENT:
        hint = _ARRAY_HINT if line.lstrip()[:1] == b"[" else "; mend it, or leave out what is not needed"
        if nested > MOST_NESTED:
            return {}, f"expected at most {MOST_NESTED} arrays and objects on a line, found more{hint}"
        return {}, (
            f"expected strict JSON on a line of more than {MOST_LENIENT} arrays and objects, found NaN, "
            f"Infinity, too deep nesting or bytes that are not UTF-8{hint}"
        )
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        problem = (
            f"expected UTF-8, found byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line"
        )
        # Read on all the same: a failed row carries the keys that could be read.
        text = line.decode(errors="replace")
    try:
        row = json.loads(text)
        # Takes more of the stack than the parser does, and may be the first to find a line nested too deeply.
        carried = _carriable(row)
    except (ValueError, RecursionError) as error:
        return {}, problem or _not_json(text, error)
    if not isinstance(row, dict):
        return {}, problem or not_an_object(row)
    return carried, problem or _lossy_key(row) or repeated_key(text)


def is_crowded(line: bytes) -> bool:
    """True for a line of more arrays and objects than any parser is given."""
    # No shorter line can hold so many.
    return len(line) > 2 * MOST_NESTED and _nested(line) > MOST_NESTED


def _nested(line: bytes) -> int:
    """Arrays and objects on the line; brackets within strings count too."""
    return line.count(b"[") + line.count(b"{")


def _lossy_key(row: dict[str, Any]) -> str | None:
    """What is wrong with the first key of ours whose value JSON or UTF-8 cannot carry."""
    for key, value in row.items():
        if key in dialect.KNOWN_KEYS and isinstance(value, (str, float)) and _carriable(value) is not value:
            return f"{key}: expected a value that JSON and UTF-8 can carry, found {ascii(value)[:60]}"
    return None


def _carriable(value: Any) -> Any:
    """`value` without what JSON or UTF-8 cannot say; the same object where nothing changes."""
    if isinstance(value, str):
        return _SURROGATE.sub(REPLACEMENT, value) if _SURROGATE.search(value) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_carriable(item) for item in value]
    if isinstance(value, dict):
        return {_carriable(key): _carriable(item) for key, item in value.items()}
    return value


def repeated_key(text: str) -> str | None:
    """What is wrong when an object gives one key two values: JSON readers keep the last in silence."""
    repeated: list[str] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) != len(pairs):
            repeated.extend(key for key, value in pairs if row[key] != value)
        return row

    try:
        json.loads(text, object_pairs_hook=build)
    except (ValueError, RecursionError):
        return None
    if not repeated:
        return None
    return f"key {dialect.brief(repeated[0])} is given twice with different values; keep one of them"


def not_an_object(value: Any) -> str:
    """What is wrong with a line that holds some other JSON value."""
    kinds = {list: "an array", str: "a string", bool: "true or false"}
    found = "null" if value is None else f"{kinds.get(type(value), 'a number')}: {dialect.brief(value)}"
    hint = _ARRAY_HINT if isinstance(value, list) else ""
    return f"expected one JSON object on the line, found {found}{hint}"


def _not_json(text: str, error: Exception) -> str:
    start = text.strip()
    if isinstance(error, RecursionError):
        return f"nested too deeply to read: {dialect.brief(start)}"
    # A comma at the end: the line is one element of an array with a line for each.
    hint = _ARRAY_HINT if start[:1] in ("[", "]") or start[-2:] == "}," else ""
    if start in ("{", "}"):
        hint = "; if the JSON is spread over several lines, put each object on one: jq -c ."
    # The parser's own "line 1 column 30" would read like a line of the manifest.
    reason = (
        f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
    )
    return f"expected one JSON object on the line, found {dialect.brief(start)} ({reason}){hint}"
