"""From what the user typed to a checkpoint on this machine."""

from __future__ import annotations

import re
from pathlib import Path

from oasr.checkpoints import catalog, hub
from oasr.checkpoints.contents import ResolvedCheckpoint
from oasr.checkpoints.detect import FORMATS, detect
from oasr.errors import CheckpointError

_HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


def resolve(spec: str) -> ResolvedCheckpoint:
    """Find the checkpoint that `spec` names.

    In this order: a catalog name, an existing folder or file (`./base` when a folder is called
    like a catalog entry), a hub id `owner/name` or `owner/name@revision`.

    Raises:
        CheckpointError: there is no such thing, its files fail their checks, or its format is
            unknown or ambiguous.
    """
    if catalog.find(spec) is not None:
        return _at(catalog.locate(spec) or catalog.pull(spec), spec)
    if not spec:
        # As a path it would be the current folder.
        raise CheckpointError(
            "model: the name is empty; give a catalog name, a path or a hub id (owner/name)"
        )
    try:
        path = Path(spec).expanduser()
        exists = path.exists()
    except (RuntimeError, OSError) as error:  # no such user's home, or a name that no file can have
        raise CheckpointError(f"model {spec!r}: not a path that can be looked up ({error})") from error
    if exists:
        return _at(path, spec)
    if (there := hub_id(spec)) is None:
        known = ", ".join(entry.name for entry in catalog.entries())
        raise CheckpointError(
            f"model {spec!r}: no such folder or file, and neither a hub id (owner/name) nor one of the "
            f"catalog names: {known}"
        )
    try:
        folder = hub.fetch(*there)
    except CheckpointError as error:
        raise CheckpointError(f"model {spec!r}: {error}. {catalog.alternatives()}") from error
    return _at(folder, spec)


def hub_id(spec: str) -> tuple[str, str | None] | None:
    """Repository and revision that `spec` names, should it be no path; None when it has not that shape."""
    match = _HUB_ID.fullmatch(spec)
    # `./name` and `../name` would pass for hub ids, and are paths that do not exist.
    return None if match is None or spec.startswith(".") else (match["repo"], match["revision"])


def _at(path: Path, name: str) -> ResolvedCheckpoint:
    format_name = detect(path)
    files = FORMATS.get(format_name)().files(path)
    return ResolvedCheckpoint(path, format_name, name, files, files.get("tokenizer"))
