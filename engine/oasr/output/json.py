"""`--format json`: one file an utterance in the shape that readers of Whisper's own JSON expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from oasr.output.jsonl import encode_value
from oasr.output.rows import row_id
from oasr.output.segments import Segment, segments_of
from oasr.types import RequestOutput


class WhisperJsonWriter:
    """`{id, text, language, duration, segments: [{id, start, end, text, words}]}`.

    A word is `{word, start, end, probability}`, the names Whisper uses; `words` is there only when word
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
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
    }
    if with_words:
        record["words"] = [
            {
                "word": word["word"],
                "start": word["start"],
                "end": word["end"],
                "probability": word["confidence"],
            }
            for word in segment.words
        ]
    return record
