"""Where oasr keeps what it can make again: unpacked models, notes, compiled kernels."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

ENVIRONMENT = "OASR_CACHE_DIR"
_NOWHERE = Path(os.devnull) / "oasr"
"""Below what is no folder nothing can be: to read or write there is an OSError, which all callers expect."""


def cache_dir() -> Path:
    """$OASR_CACHE_DIR, else the `oasr` folder of the platform's cache directory.

    A user without a home folder (in a container, under a uid that no table knows) gets a private one for
    temporary files; where none is safe, a path that cannot come into being.
    """
    try:
        chosen = os.environ.get(ENVIRONMENT)
        if chosen:
            return Path(chosen).expanduser()
        base = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base else Path.home() / ".cache") / "oasr"
    except RuntimeError:
        return _temporary() or _NOWHERE


def _temporary() -> Path | None:
    """oasr-<uid> among the temporary files, if nobody else can have put anything into it."""
    # Whoever writes here has our processes run his kernels and trust his notes of checked models.
    if not hasattr(os, "geteuid"):
        return None
    user = os.geteuid()
    try:
        parent = Path(tempfile.gettempdir())
        above = parent.stat()
        # Else another user could put his own folder in the place of ours, after it was looked at.
        if above.st_uid not in (0, user) or (above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX):
            return None
        folder = parent / f"oasr-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        # Not through a link: it could lead to any folder of this user.
        found = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return folder if private else None
