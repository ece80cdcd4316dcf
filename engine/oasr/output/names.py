"""Utterance id → file name: readable, safe on every file system, and never shared by two ids.

An id that is a good file name stays as it is. Any other is made readable (`a/b` → `a_b`) and gets
`~` and ten hex digits of the id's SHA-256, and so does a good name that ends the same way: as exact
strings, names are then as different as the ids are. Names that differ only in case or in Unicode form
are one file on some systems; `fold` says which, and `NameBook` keeps those apart too.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAX_STEM_BYTES = 120  # 255 on common file systems, 143 under eCryptfs; room for suffixes

_FORBIDDEN = frozenset('<>:"/\\|?*')
_HASHED = re.compile(r"~[0-9a-f]{10,64}\Z")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{device}{digit}" for device in ("com", "lpt") for digit in "0123456789¹²³"]
)
# Stems of the files that belong to the run and to no utterance.
_RUN_STEMS = frozenset({"results", "run"})


def safe_name(utterance_id: str) -> str:
    """The file name without suffix for `utterance_id`; the id itself when that is safe."""
    name = _readable(utterance_id)
    if name != utterance_id or _HASHED.search(name) or fold(name) in _RUN_STEMS:
        return hashed_name(utterance_id)
    return name


def hashed_name(utterance_id: str, digits: int = 10) -> str:
    """A readable stem and `digits` (10 to 64) hex digits that tell it from every other id's."""
    digest = hashlib.sha256(utterance_id.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{_cut(_readable(utterance_id), MAX_STEM_BYTES - digits - 1)}~{digest}"


def fold(name: str) -> str:
    """A form that is equal for two names which some file system takes for one file."""
    # Some systems compare small letters, some capitals. They differ: the capital of `ı` is that of `i`.
    return unicodedata.normalize("NFKC", name).casefold().upper().casefold()


def _readable(text: str) -> str:
    """`text` with every unsafe part replaced; unchanged exactly when it is a safe name."""
    kept = "".join(c if c.isprintable() and c not in _FORBIDDEN else "_" for c in text)
    # Windows drops dots and spaces at the end of a name.
    kept = _cut(kept, MAX_STEM_BYTES).lstrip(" ").rstrip(" .")
    hidden = not kept or kept.startswith(".")
    # On Windows a device keeps its meaning with any suffix: `con.txt` is the console.
    device = kept.split(".")[0].strip().casefold() in _DEVICES
    return _cut(f"_{kept}", MAX_STEM_BYTES) if hidden or device else kept


def _cut(text: str, size: int) -> str:
    """The longest start of `text` that is at most `size` bytes of UTF-8."""
    # Half characters, which UTF-8 cannot hold, are not printable and were replaced by now.
    return text.encode("utf-8")[:size].decode("utf-8", "ignore")
