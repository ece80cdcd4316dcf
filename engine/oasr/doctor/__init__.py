"""What `oasr doctor` looks at: whether this machine can transcribe, and what mends it where it cannot.

A check is a function that yields Findings. One that breaks is a finding itself: the doctor always ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from oasr.doctor.codecs import check_codecs
from oasr.doctor.compiled import check_extension, check_gpu, check_kernels
from oasr.doctor.finding import Check, Finding
from oasr.doctor.models import check_models
from oasr.doctor.packages import check_packages, check_python, check_torch
from oasr.doctor.room import check_room
from oasr.reinstall import pip_install

__all__ = ["CHECKS", "Finding", "examine"]
CHECKS: tuple[Check, ...] = (
    check_python,
    check_packages,
    check_torch,
    check_extension,
    check_gpu,
    check_kernels,
    check_codecs,
    check_models,
    check_room,
)


def examine(model: str, checks: tuple[Check, ...] = CHECKS) -> Iterator[Finding]:
    """Every finding, as it is made; `model` is what transcribing shall work with."""
    for check in checks:
        try:
            yield from check(model)
        except Exception as error:  # whatever a broken installation raises, the other checks still tell
            yield Finding(
                check.__name__.removeprefix("check_"),
                "fails",
                f"{type(error).__name__}: {error}",
                pip_install("", "--force-reinstall"),
            )
