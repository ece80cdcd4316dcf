"""`--format rttm`: where somebody speaks, in the whole list, as NIST's Rich Transcription tools read it.

One line a region, `SPEAKER <file> <channel> <start> <duration> <NA> <NA> speech <NA> <NA>`, times in seconds
of the recording: the ten fields of the RT-09 evaluation plan. A detector tells speech from none, not who
speaks, so all regions have one speaker, called `speech`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from oasr.errors import OutputError
from oasr.output.recording_name import audio_of, recording_of
from oasr.types import RequestOutput, finite


class RttmWriter:
    """Regions of speech; failed rows, and rows in which nobody speaks, have no lines."""

    scope: Literal["run"] = "run"
    suffix = "results.rttm"
    speech: Literal["needed"] = "needed"

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """The lines of one row, in order.

        Raises:
            OutputError: nobody looked for speech in the row.
        """
        if "error" in row:
            return ""
        regions = row.get("speech")
        if regions is None:
            raise OutputError(
                "it was transcribed without a voice activity detector; remove its line from results.jsonl to "
                "have it done again with one, start over with --overwrite, or leave the format out"
            )
        place = " ".join(recording_of(row))
        return "".join(_line(place, region) for region in regions)

    def place(self, row: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
        """See SortedWriter: a place is one channel of one recording."""
        return recording_of(row), audio_of(row) or ""

    def merge(self, texts: list[str]) -> str:
        """The lines of one channel by their start."""
        lines = "".join(texts).splitlines(keepends=True)
        return "".join(sorted(lines, key=lambda line: float(line.split(" ")[3])))


def _line(place: str, region: Any) -> str:
    start, end = (finite(time) or 0.0 for time in region)
    return f"SPEAKER {place} {start:.3f} {max(0.0, end - start):.3f} <NA> <NA> speech <NA> <NA>\n"
