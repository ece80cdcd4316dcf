"""Where and with what a report was made: machine, versions, commit, model."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import oasr
from oasr.checkpoints.facts import loaded_facts

if TYPE_CHECKING:
    from oasr.engine import Engine

_PACKAGES = ("numpy", "soundfile", "tokenizers", "torch", "transformers")


def describe(engine: Engine) -> dict[str, Any]:
    """The machine, the libraries and the threads that `engine` runs on, as they are now."""
    checkout = commit_of(Path(oasr.__file__).parent)
    cuda = engine.device.type == "cuda"
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": _usable_cores(),
        "memory_bytes": _memory_bytes(),
        "system": platform.platform(),
        "gpu": torch.cuda.get_device_name(engine.device) if cuda else None,
        "gpu_driver": gpu_driver() if cuda else None,
        "cuda": torch.version.cuda if cuda else None,
        "python": platform.python_version(),
        "oasr": oasr.__version__,
        "commit": checkout[0] if checkout else None,
        "uncommitted_changes": checkout[1] if checkout else None,
        "packages": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
        "threads": torch.get_num_threads(),
        "reader_threads": engine.config.workers,
    }


def load_average() -> float | None:
    """How many processes wanted a core in the last minute: near 0 before a fair measurement."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def model_facts(engine: Engine) -> dict[str, Any]:
    """What the engine loaded: name, architecture, format, and the digest of its weights."""
    return loaded_facts(engine.config.model, engine.model)


def commit_of(folder: Path) -> tuple[str, bool] | None:
    """(commit, whether tracked files differ from it) of the checkout that `folder`'s code belongs to.

    None where the code is not tracked by git: an installed package inside somebody's repository has
    nothing to do with that repository's commit.
    """
    if _output("git", "-C", str(folder), "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = _output("git", "-C", str(folder), "rev-parse", "HEAD")
    changes = _output("git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no")
    return None if commit is None else (commit, bool(changes))


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    mac = _output("sysctl", "-n", "machdep.cpu.brand_string") if platform.system() == "Darwin" else None
    return next(named, None) or mac or platform.processor() or platform.machine()


def gpu_driver() -> str | None:
    """Version of the NVIDIA driver; None when nothing tells."""
    told = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return told.splitlines()[0].strip() if told else None


def _usable_cores() -> int:
    """Cores that this process may run on."""
    # os.cpu_count() would count cores that are not ours.
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _output(*command: str) -> str | None:
    """What a command prints; None when there is no such command or it fails."""
    try:
        # A driver or a file system that hangs must not hang the benchmark.
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
