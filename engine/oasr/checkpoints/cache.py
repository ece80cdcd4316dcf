"""The note of files whose sha256 has been checked."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path

from oasr.folders import cache_dir

_BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def known_sha256(path: Path) -> str:
    """sha256 of `path`, read from the note while its size and modification time are unchanged.

    The note saves rehashing large weights on every start. It notices any ordinary change; it is no
    protection against somebody who also restores the time stamp (`catalog.verify` rehashes).
    """
    stat = path.stat()
    key, state = str(path.resolve()), [stat.st_size, stat.st_mtime_ns]
    notes = _read_notes()
    noted = notes.get(key)
    if isinstance(noted, list) and len(noted) == 3 and noted[:2] == state and isinstance(noted[2], str):
        return noted[2]
    digest = sha256_of(path)
    # Without a lock: a note that another process overwrites costs a hash later.
    _write_notes({**notes, key: [*state, digest]})
    return digest


def weights_sha256(path: Path) -> str:
    """sha256 of a weights file; of a sharded model, of the `sha256sum` listing of its shards by name."""
    if not path.name.endswith(".index.json"):
        return known_sha256(path)
    from oasr.checkpoints.hf import shards_of

    listing = "".join(f"{known_sha256(shard)}  {shard.name}\n" for shard in shards_of(path))
    return hashlib.sha256(listing.encode()).hexdigest()


def _notes_path() -> Path:
    return cache_dir() / "verified.json"


def _read_notes() -> dict[str, object]:
    try:
        notes = json.loads(_notes_path().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def _write_notes(notes: dict[str, object]) -> None:
    # A cache that cannot be written costs a hash on the next start and nothing else.
    with contextlib.suppress(OSError):
        folder = _notes_path().parent
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".verified-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(notes, stream, indent=1)
        Path(name).replace(_notes_path())
