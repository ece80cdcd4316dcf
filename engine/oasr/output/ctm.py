"""`--format ctm`: NIST's time-marked words for the whole list, as sclite and Kaldi's scripts read them.

One line a word, `<file> <channel> <start> <duration> <word> [<confidence>]`, times in seconds of the
recording. There is one file for the run because sclite takes one, and it is sorted by file and channel
in ASCII order and by start in numeric order because sclite ends with an error where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from oasr.errors import OutputError
from oasr.output.recording_name import audio_of, recording_of
from oasr.types import RequestOutput, finite


class CtmWriter:
    """Words with times and confidences; failed rows, and rows without speech, have no lines."""

    scope: Literal["run"] = "run"
    suffix = "results.ctm"
    word_times: Literal["needed"] = "needed"

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """The lines of one row, in order.

        Raises:
            OutputError: a transcript without word times.
        """
        if "error" in row:
            return ""
        words = row.get("words")
        if words is None and str(row.get("pred_text") or "").strip():
            raise OutputError(
                "it has a transcript without word times; remove its line from results.jsonl to have it "
                "transcribed again with them, start over with --overwrite, or leave the format out"
            )
        file, channel = recording_of(row)
        return "".join(_line(f"{file} {channel}", word) for word in words or () if str(word["word"]).split())

    def place(self, row: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
        """See SortedWriter: a place is one channel of one recording."""
        return recording_of(row), audio_of(row) or ""

    def merge(self, texts: list[str]) -> str:
        """The lines of one channel by their start, which stretches that overlap would leave mixed up."""
        lines = "".join(texts).splitlines(keepends=True)
        return "".join(sorted(lines, key=lambda line: float(line.split(" ")[2])))


def _line(place: str, word: Mapping[str, Any]) -> str:
    start = finite(word["start"]) or 0.0
    length = max(0.0, (finite(word["end"]) or start) - start)
    # A record is divided at white space, so a word must hold none.
    line = f"{place} {start:.3f} {length:.3f} {'_'.join(str(word['word']).split())}"
    confidence = finite(word.get("confidence"))
    return line + ("\n" if confidence is None else f" {confidence:.4f}\n")
