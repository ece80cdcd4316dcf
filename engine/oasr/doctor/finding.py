"""One line of the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        name: what was looked at.
        status: "ok"; "warning" = something is slower or missing, transcribing works; "fails" = it does not.
        found: what is there, for people.
        mend: the command, or the step, that puts it right; "" when nothing is wrong.
    """

    name: str
    status: Literal["ok", "warning", "fails"]
    found: str
    mend: str = ""


Check = Callable[[str], Iterator[Finding]]
"""A check; it is told which model transcribing shall work with."""
