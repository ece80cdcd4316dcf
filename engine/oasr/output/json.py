"""`--format json`: one file an utterance in the shape that readers of Whisper's own JSON expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from oasr.output.jsonl import encode_value
from oasr.output.layout import timed_pieces
from oasr.output.rows import row_id
from oasr.output.segments import Segment, segments_of
from oasr.types import RequestOutput


class WhisperJsonWriter:
    """`{id, text, language, duration, segments: [{id, start, end, text, words}]}`.

    A word is `{word, start, end, probability}`. As Whisper's, it brings the white space and the marks
    around it, so that the words of a segment, joined, are its text. `words` is there only when word
    times were asked for.
    """

    scope: Literal["utterance"] = "utterance"
    suffix = ".json"

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """The document of one utterance, on one line."""
        with_words = "words" in row
        document = {
            "id": row_id(row),
            "text": row.get("pred_text"),
            "language": row.get("language"),
            "duration": row.get("duration"),
            "segments": [
                _record(number, segment, with_words)
                for number, segment in enumerate(segments_of(row, output))
            ],
        }
        return encode_value(document).decode("utf-8") + "\n"


def _record(number: int, segment: Segment, with_words: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": number,
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
    }
    if with_words:
        record["words"] = [
            {
                "word": " " * (i > 0 and piece.spaced) + piece.text,
                "start": piece.start / 1000,
                "end": piece.end / 1000,
                "probability": piece.confidence,
            }
            for i, piece in enumerate(timed_pieces(segment.text, segment.words))
        ]
    return record
