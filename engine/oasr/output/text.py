"""`--format txt`: one file an utterance, one line a segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from oasr.output.segments import segments_of
from oasr.types import RequestOutput


class TextWriter:
    """The transcript alone; an utterance without speech gives an empty file."""

    scope: Literal["utterance"] = "utterance"
    suffix = ".txt"

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """One line for each segment with text."""
        return "".join(f"{segment.text}\n" for segment in segments_of(row, output))
