"""Python and the packages that oasr asks for: there, new enough, and fitting each other."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version

from oasr.doctor.finding import Finding

_OLDEST = (3, 10)


def check_python(_: str) -> Iterator[Finding]:
    """The interpreter."""
    good = sys.version_info[:2] >= _OLDEST
    mend = "" if good else "install Python 3.10 or newer, and oasr into a new environment of it"
    found = f"{platform.python_version()}, {platform.machine()}"
    yield Finding("python", "ok" if good else "fails", found, mend)


def check_packages(_: str) -> Iterator[Finding]:
    """What oasr's own metadata demands, extras left out."""
    from packaging.requirements import Requirement

    good, wanted = [], [Requirement(text) for text in requires("oasr") or ()]
    for requirement in wanted:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        plain = f"{requirement.name}{requirement.specifier}"
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            yield Finding(requirement.name, "fails", "not installed", f"pip install '{plain}'")
            continue
        if requirement.specifier.contains(found, prereleases=True):
            good.append(f"{requirement.name} {found}")
        else:
            found = f"{found}, and oasr needs {requirement.specifier}"
            yield Finding(requirement.name, "fails", found, f"pip install '{plain}'")
    yield Finding("packages", "ok", ", ".join(good))


def check_torch(_: str) -> Iterator[Finding]:
    """Whether torch and torchaudio load together: a build for another torch or CUDA does not."""
    builds = []
    for name in ("torch", "torchaudio"):
        try:
            module = import_module(name)
        except Exception as error:  # a library built for another torch may fail in any way
            mend = "pip install --force-reinstall torch torchaudio"
            yield Finding(name, "fails", f"does not load: {type(error).__name__}: {error}", mend)
            return
        builds.append(f"{name} {module.__version__}")
    yield Finding("torch", "ok", f"{', '.join(builds)} load together")
