"""Transcripts with word times, made up: as the engine would hand them to a writer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from oasr.output.rows import result_row
from oasr.types import RequestOutput, WordTiming

# As the engine cuts words: at white space, and around every ideograph, kana and Hangul syllable.
_WORD = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\s\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")


def spoken(
    text: str, *, start: float = 0.0, rate: float = 0.3, pauses: Mapping[int, float] | None = None
) -> RequestOutput:
    """`text` said word by word, `rate` seconds each, with silence before the words that `pauses` numbers."""
    words, clock = [], start
    for number, match in enumerate(_WORD.finditer(text)):
        clock += (pauses or {}).get(number, 0.0)
        words.append(WordTiming(match[0], clock, clock + rate, 0.5))
        clock += rate
    return timed(text, words, start=start)


def timed(text: str, words: Sequence[WordTiming], start: float = 0.0) -> RequestOutput:
    """`text` with `words`, in a recording that ends a second after the last of them."""
    end = max([start, *(word.end for word in words)]) + 1
    return RequestOutput(
        "u",
        text=text,
        language="en",
        duration_s=end - start,
        segments=((start, end, text),) if text.strip() else (),
        words=tuple(words),
    )


def row_of(output: RequestOutput, **keys: Any) -> dict[str, Any]:
    """The result row of `output`."""
    return result_row({"id": output.request_id, **keys}, output.request_id, output)
