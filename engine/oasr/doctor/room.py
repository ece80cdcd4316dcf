"""Disk and memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from oasr.doctor.finding import Finding
from oasr.folders import ENVIRONMENT, cache_dir

_GIB = 2**30
_DISK, _MEMORY = _GIB, 2 * _GIB


def check_room(_: str) -> Iterator[Finding]:
    """The cache folder, the current folder, the folder for temporary files, and the memory."""
    places = (
        ("cache", cache_dir()),
        ("current folder", Path.cwd()),
        ("temporary", Path(tempfile.gettempdir())),
    )
    for name, folder in places:
        yield _disk(name, folder)
    free = _free_memory()
    if free is None:
        yield Finding("memory", "ok", "this system does not tell")
    elif free < _MEMORY:
        mend = "close other programs, or use a smaller model and --batch-size 1"
        yield Finding("memory", "warning", f"{free / _GIB:.1f} GiB free", mend)
    else:
        yield Finding("memory", "ok", f"{free / _GIB:.1f} GiB free")


def _disk(name: str, folder: Path) -> Finding:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    found = f"{folder}: {free / _GIB:.1f} GiB free"
    elsewhere = {"cache": f"set {ENVIRONMENT} to another folder", "temporary": "set TMPDIR to another folder"}
    mend = elsewhere.get(name, "give --output-dir another folder")
    # A cache that is not safe to keep lies below what is no folder.
    if not there.is_dir() or not os.access(there, os.W_OK):
        return Finding(f"disk, {name}", "warning", f"{found}, and it may not be written to", mend)
    if free < _DISK:
        return Finding(f"disk, {name}", "warning", found, f"make room, or {mend}")
    return Finding(f"disk, {name}", "ok", found)


def _free_memory() -> int | None:
    """Bytes that a process could get without swapping; None where there is no telling."""
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
