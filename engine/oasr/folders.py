"""Where oasr keeps what it can make again: unpacked models, notes, compiled kernels."""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "OASR_CACHE_DIR"


def cache_dir() -> Path:
    """$OASR_CACHE_DIR, else the `oasr` folder of the platform's cache directory."""
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "oasr"
