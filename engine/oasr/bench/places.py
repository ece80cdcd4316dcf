"""Where reports may be written, found out before anything is measured."""

from __future__ import annotations

import os
from pathlib import Path

from oasr.errors import OptionsError


def is_there(path: Path, flag: str) -> bool:
    """Whether `path` is a file already; when not, whether one can be made there.

    Raises:
        OptionsError: it is a folder, device or pipe, its folder does not exist, or nobody may write there.
    """
    there = path.exists() or path.is_symlink()
    if there and not path.is_file():
        raise OptionsError(f"{flag}: {path}: expected an ordinary file or a name that is free")
    if not path.parent.is_dir():
        raise OptionsError(f"{flag}: {path.parent}: there is no such folder")
    if not os.access(path if there else path.parent, os.W_OK):
        raise OptionsError(f"{flag}: {path}: may not be written to")
    return there
