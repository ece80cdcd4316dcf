"""RequestOutput + the manifest row → the result row that is written.

A result row is the manifest row with the result after it. Three rules for keys that both have:

- `pred_text`, `language_probability`, `score`, `confidence`, `finish_reason`, `warnings`, `segments`,
  `speech`, `words`, `timestamps`, `nbest`, `wer`, `cer` and `error` belong to the result. What the manifest
  row has under these names came from an earlier run and is dropped, so that nothing stale survives.
- `language` and `duration` describe the recording: the manifest's value stays unless it is null, or a
  `duration` of 0 without `offset`, `start` and `end`, which says that nobody measured the file.
- everything else is the manifest's and is carried through untouched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oasr.output.segments import segment_records
from oasr.types import RequestOutput, WordTiming

ID_KEYS = ("id", "key")
STRETCH_KEYS = ("offset", "start", "end")
_ALWAYS = ("pred_text", "score", "confidence", "finish_reason")
_SOMETIMES = (
    *("language_probability", "warnings", "segments", "speech", "words", "timestamps"),
    *("nbest", "wer", "cer", "error"),
)
RESULT_KEYS = frozenset((*_ALWAYS, *_SOMETIMES))
_SECONDS, _SCORES = 3, 4  # decimals


@dataclass(frozen=True, slots=True)
class RowExtras:
    """What a row carries beyond the transcript.

    Attributes:
        nbest: write the n-best list, even when it has one entry.
        scores: keys to add when the row was scored (`Score.as_row()`: `wer` or `cer`).
    """

    nbest: bool = False
    scores: Mapping[str, Any] = field(default_factory=dict)


def result_row(
    row: Mapping[str, Any], utterance_id: str, output: RequestOutput, extras: RowExtras | None = None
) -> dict[str, Any]:
    """The row to write for one finished utterance, its keys in their fixed order.

    Args:
        row: the manifest row's own keys.
        utterance_id: the id that the run uses; written as `id` unless the row already carries it.
        output: the result; one with `error_stage` becomes a failure row.
        extras: n-best and scores, where asked for.
    """
    if not output.ok:
        message = output.error_message or "the engine gave no reason"
        return failure_row(row, utterance_id, output.error_stage or "decode", message) | _warnings(output)
    extras = extras or RowExtras()
    result = own_keys(row, utterance_id)
    result["pred_text"] = output.text or ""
    if result.get("language") is None:
        result["language"] = output.language
    if output.language_probability is not None:
        result["language_probability"] = _number(output.language_probability, _SCORES)
    if not _says_duration(result):
        result["duration"] = _number(output.duration_s, _SECONDS)
    result["score"] = _number(output.scores[0] if output.scores else None, _SCORES)
    result["confidence"] = _number(output.confidence, _SCORES)
    result["finish_reason"] = output.finish_reason
    result |= _warnings(output)
    if segments := segment_records(result, output):
        result["segments"] = segments
    if output.speech is not None:
        result["speech"] = [[_number(t, _SECONDS) for t in region] for region in output.speech]
    if output.words is not None:
        result["words"] = [word_record(word) for word in output.words]
    if output.timestamps is not None:
        result["timestamps"] = [[_number(t, _SECONDS) for t in span] for span in output.timestamps]
    if extras.nbest:
        result["nbest"] = _nbest(output)
    return result | dict(extras.scores)


def failure_row(row: Mapping[str, Any], utterance_id: str, stage: str, message: str) -> dict[str, Any]:
    """The row to write for one that failed: its own keys and `error`, and no transcript."""
    return own_keys(row, utterance_id) | {"error": {"stage": stage, "message": message}}


def own_keys(row: Mapping[str, Any], utterance_id: str) -> dict[str, Any]:
    """The keys that a result row has from its manifest row, the id among them."""
    own = {key: value for key, value in row.items() if key not in RESULT_KEYS}
    # It may stand under `key`, or be a number: a row keeps the id that it came with.
    if row_id(own) == utterance_id:
        return own
    if "id" in own:
        return own | {"id": utterance_id}
    return {"id": utterance_id} | own


def row_id(row: Mapping[str, Any]) -> str | None:
    """The utterance id that a result row carries; None when it has none."""
    for key in ID_KEYS:
        value = row.get(key)
        if value is not None:
            return str(value)
    return None


def word_record(word: WordTiming) -> dict[str, Any]:
    """One entry of `words`: times in seconds of the original recording."""
    return {
        "word": word.word,
        "start": _number(word.start, _SECONDS),
        "end": _number(word.end, _SECONDS),
        "confidence": _number(word.confidence, _SCORES),
    }


def _says_duration(row: Mapping[str, Any]) -> bool:
    """Whether the row's own `duration` is one: the list reads 0 without a stretch as not given."""
    value = row.get("duration")
    if value is None:
        return False
    if any(row.get(key) is not None for key in STRETCH_KEYS):
        return True
    try:
        return float(value) != 0
    except (TypeError, ValueError, OverflowError):
        return True


def _warnings(output: RequestOutput) -> dict[str, Any]:
    return {"warnings": list(output.warnings)} if output.warnings else {}


def _nbest(output: RequestOutput) -> list[dict[str, Any]]:
    texts = output.nbest_texts or (output.text or "",)
    scores = (*output.scores, *[None] * len(texts))
    return [
        {"text": text, "score": _number(score, _SCORES)} for text, score in zip(texts, scores, strict=False)
    ]


def _number(value: Any, decimals: int) -> float | None:
    """`value` rounded, or None when there is none or it is not finite; never -0.0."""
    if value is None:
        return None
    number = float(value)
    return round(number, decimals) + 0.0 if math.isfinite(number) else None
