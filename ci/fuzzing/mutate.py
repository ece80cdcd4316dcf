"""Damage: bytes, numbers, JSON and YAML values, safetensors headers, members of PyTorch archives.

Everything comes from one `random.Random`, so that an input is known by its number.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

Mutator = Callable[[bytes, Random], bytes]

_NUMBERS = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**40)
_NUMBERS += (2**62, 2**63 - 1, 2**63, 2**64 - 1)
_TEXTS = (
    "1e400", "-1", "0", "99999999999999999999", "NaN", "-Infinity", "1" * 5000, "null", "true", '""', "[]",
    "{}", "\x00", "\ud800", "\ufeff", "\u202e", "\n", "\r\n", "\t", " ", '"', "'", "\\", "\\ud800", "\\u0000",
    ":", ",",
    "[" * 2000, '{"a":' * 1500, "]" * 9, "../../etc/passwd", "/dev/zero", "é" * 300, "|", "#", "A" * 70000,
)  # fmt: skip
_YAML = (
    "&a [*a]", "*a", "<<: *a", "!!python/object/apply:os.system [id]", "!!binary x", "2001-99-99", "0x",
    "0b_", "1:99:99", "---\n", "? [a]\n: b", "{" * 500, "- " * 800, "!!set {a}", "|\n", "%YAML 9\n",
    "!!float x", "!!int ''",
    "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
    "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n"
    "encoder: [*f,*f,*f,*f,*f,*f,*f,*f]\n",
)  # fmt: skip


def damage(data: bytes, random: Random) -> bytes:
    """One to eight small changes of bytes, numbers and stretches."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 2, 4, 8))):
        random.choice(_CHANGES)(changed, random)
    return bytes(changed)


def text(data: bytes, random: Random) -> bytes:
    """Damage of a text file: awkward pieces put in or in the place of words; sometimes of its bytes."""
    return _text(data, random, _TEXTS)


def yaml(data: bytes, random: Random) -> bytes:
    """As `text`, with what YAML alone can say; its values are changed as those of JSON are."""
    if random.random() < 0.4:
        import yaml as library

        try:
            value = library.safe_load(data)
        except (library.YAMLError, ValueError, RecursionError):
            return _text(data, random, _YAML)
        return json.dumps(change_value(value, random)).encode("utf-8", "surrogatepass")
    return _text(data, random, _YAML + _TEXTS)


def json_file(data: bytes, random: Random) -> bytes:
    """A value of the document becomes another one, goes, or is repeated; sometimes damage of its text."""
    if random.random() < 0.3:
        return text(data, random)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return text(data, random)
    for _ in range(random.choice((1, 1, 2, 3))):
        value = change_value(value, random)
    return _dumped(value, random)


def json_lines(data: bytes, random: Random) -> bytes:
    """Damage of one line of a manifest, or of the file as a text."""
    lines = data.split(b"\n")
    if random.random() < 0.25:
        return text(data, random)
    at = random.randrange(len(lines))
    lines[at] = json_file(lines[at], random)
    return b"\n".join(lines)


def safetensors(data: bytes, random: Random) -> bytes:
    """Damage of the header's values, of its length, or of any bytes."""
    if random.random() < 0.25 or len(data) < 8:
        return damage(data, random)
    size = struct.unpack_from("<Q", data)[0]
    try:
        header = json.loads(data[8 : 8 + size])
    except (ValueError, RecursionError):
        return damage(data, random)
    for _ in range(random.choice((1, 1, 2))):
        header = change_value(header, random)
    raw = _dumped(header, random)
    stated = random.choice(_NUMBERS) if random.random() < 0.05 else len(raw)
    return struct.pack("<Q", stated) + raw + data[8 + size :]


def torch_file(data: bytes, random: Random) -> bytes:
    """Damage within one member of the archive (mostly the pickle), whose sums are made right again."""
    if random.random() < 0.3 or not zipfile.is_zipfile(io.BytesIO(data)):
        return damage(data, random)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError):
        return damage(data, random)
    pickles = [i for i, (name, _) in enumerate(members) if name.endswith("data.pkl")]
    at = random.choice(pickles) if pickles and random.random() < 0.8 else random.randrange(len(members))
    kind = random.choice((zipfile.ZIP_STORED,) * 4 + (zipfile.ZIP_DEFLATED,))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        for i, (name, content) in enumerate(members):
            archive.writestr(name, damage(content, random) if i == at else content)
    return out.getvalue()


def change_value(value: Any, random: Random) -> Any:
    """`value` with one place in it, at any depth, changed."""
    if isinstance(value, dict) and value and random.random() < 0.92:
        key = random.choice(list(value))
        action = random.random()
        if action < 0.08:
            return {k: v for k, v in value.items() if k != key}
        if action < 0.14:
            return {**value, str(_value(random))[:40]: value[key]}
        return {**value, key: change_value(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.92:
        at = random.randrange(len(value))
        action = random.random()
        if action < 0.08:
            return value[:at] + value[at + 1 :]
        if action < 0.12:
            return value + [value[at]] * random.choice((1, 3, 1000))
        return [*value[:at], change_value(value[at], random), *value[at + 1 :]]
    return _value(random)


def _value(random: Random) -> Any:
    kind = random.randrange(9)
    if kind < 3:
        return random.choice(_NUMBERS) * random.choice((1, 1, 1, -1))
    if kind == 3:
        return random.choice((0.5, -0.0, 1e308, float("nan"), float("inf"), 1e-320))
    if kind < 6:
        return random.choice(_TEXTS)
    if kind == 6:
        return random.choice((None, True, False, [], {}, [None], {"": None}))
    if kind == 7:
        return [random.choice(_NUMBERS) for _ in range(random.choice((1, 2, 4, 40)))]
    nested: Any = 0
    for _ in range(random.choice((3, 200, 480, 900))):
        nested = [nested] if random.random() < 0.5 else {"a": nested}
    return nested


def _dumped(value: Any, random: Random) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 2000


def _text(data: bytes, random: Random, pieces: tuple[str, ...]) -> bytes:
    if random.random() < 0.25:
        return damage(data, random)
    words = [i for i, byte in enumerate(data) if byte in b' \n,:"'] or [0]
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        piece = random.choice(pieces).encode("utf-8", "surrogatepass")
        at = min(random.choice(words) + random.randrange(2), len(changed))
        changed[at : at + random.choice((0, 0, 1, 3, 9))] = piece
    return bytes(changed)


def _flip(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _byte(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))


def _number(data: bytearray, random: Random) -> None:
    code = random.choice(("<H", "<I", "<I", "<Q", ">H", ">I", ">Q"))
    size = struct.calcsize(code)
    if len(data) >= size:
        # Headers lie at the start, where most of what a reader believes is written.
        at = random.randrange(min(len(data) - size + 1, random.choice((48, 400, len(data)))) or 1)
        struct.pack_into(code, data, at, random.choice(_NUMBERS) % (1 << 8 * size))


def _cut(data: bytearray, random: Random) -> None:
    if data:
        del data[random.randrange(len(data)) :]


def _drop(data: bytearray, random: Random) -> None:
    if data:
        at = random.randrange(len(data))
        del data[at : at + random.choice((1, 2, 4, 64))]


def _repeat(data: bytearray, random: Random) -> None:
    if data:
        at = random.randrange(len(data))
        data[at:at] = data[at : at + random.choice((1, 4, 64, 700))] * random.choice((1, 2, 20))


def _insert(data: bytearray, random: Random) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.randbytes(random.choice((1, 2, 4, 16)))


def _swap(data: bytearray, random: Random) -> None:
    if len(data) > 8:
        a, b = random.randrange(len(data) - 4), random.randrange(len(data) - 4)
        data[a : a + 4], data[b : b + 4] = data[b : b + 4], data[a : a + 4]


_CHANGES = (_flip, _flip, _byte, _byte, _number, _number, _number, _cut, _drop, _repeat, _insert, _swap)
