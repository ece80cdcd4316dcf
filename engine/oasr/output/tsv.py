"""`--format tsv`: start, end and text of every cue, the columns of Whisper's own TSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oasr.output.cue_writer import CueWriter
from oasr.output.cues import cues_of
from oasr.types import RequestOutput


class TsvWriter(CueWriter):
    """A line a cue, below a header: whole milliseconds and the text on one line.

    The cues are those of srt and vtt. Nothing is quoted: the text holds neither tabs nor line ends.
    """

    suffix = ".tsv"

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """The header and all cues of one utterance."""
        cues = cues_of(row, output, self.settings.cues)
        return "start\tend\ttext\n" + "".join(f"{cue.start}\t{cue.end}\t{cue.text}\n" for cue in cues)
