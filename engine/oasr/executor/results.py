"""Hypotheses → text, and the windows of one utterance → one result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from oasr.errors import RowError
from oasr.executor.rescue import Outcome
from oasr.tokenizers.base import Tokenizer
from oasr.types import Request, RequestOutput


@dataclass(slots=True)
class _Open:
    """An utterance whose windows are still on their way."""

    expected: int
    duration_s: float
    warnings: tuple[str, ...]
    parts: dict[int, RequestOutput] = field(default_factory=dict)


class ResultAssembler:
    """Collects window results and hands out one RequestOutput an utterance, when its last one lands."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """`tokenizer` renders token ids."""
        self._tokenizer = tokenizer
        self._open: dict[int, _Open] = {}

    def expect(self, key: int, windows: int, duration_s: float, warnings: tuple[str, ...] = ()) -> None:
        """Announce the utterance `key` of `windows` windows and `duration_s` seconds."""
        self._open[key] = _Open(windows, duration_s, warnings)

    def add(self, outcome: Outcome) -> RequestOutput | None:
        """Account for one window; the whole utterance's result when it was the last."""
        request = outcome.request
        waiting = self._open[request.key]
        waiting.parts[request.window] = (
            failure(request.id, outcome.error, request) if outcome.error else self._render(outcome)
        )
        if len(waiting.parts) < waiting.expected:
            return None
        del self._open[request.key]
        return _join([part for _, part in sorted(waiting.parts.items())], waiting)

    def clear(self) -> None:
        """Forget utterances that will not be finished."""
        self._open.clear()

    def _render(self, outcome: Outcome) -> RequestOutput:
        request, best = outcome.request, outcome.hypotheses[0]
        texts = tuple(self._tokenizer.decode(h.tokens).strip() for h in outcome.hypotheses)
        end_s = request.start_s + request.duration_s
        return RequestOutput(
            request.id,
            text=texts[0],
            tokens=tuple(h.tokens for h in outcome.hypotheses),
            scores=tuple(h.score for h in outcome.hypotheses),
            nbest_texts=texts if request.options.n_best > 1 else (),
            words=best.words,
            confidence=best.confidence,
            finish_reason=best.finish_reason,
            language=best.language,
            language_probability=best.language_probability,
            duration_s=request.duration_s,
            segments=((request.start_s, end_s, texts[0]),) if texts[0] else (),
            latency_s=time.perf_counter() - request.admitted_at,
        )


def failure(request_id: str, error: RowError, request: Request | None = None) -> RequestOutput:
    """The result of a request that failed."""
    latency = time.perf_counter() - request.admitted_at if request else 0.0
    return RequestOutput(
        request_id,
        latency_s=latency,
        error_stage=error.stage,
        error_message=str(error),
        finish_reason="error",
    )


def _join(parts: Sequence[RequestOutput], waiting: _Open) -> RequestOutput:
    """Windows in order → one result; a failed window fails the utterance, since a hole would be silent."""
    failed = next((part for part in parts if not part.ok), None)
    if failed is not None:
        return RequestOutput(
            failed.request_id,
            duration_s=waiting.duration_s,
            warnings=waiting.warnings,
            latency_s=max(p.latency_s for p in parts),
            error_stage=failed.error_stage,
            error_message=failed.error_message,
            finish_reason="error",
        )
    if len(parts) == 1:
        return _whole(parts[0], parts, waiting)
    return _whole(max(parts, key=lambda p: len(p.tokens[0])), parts, waiting)


def _whole(main: RequestOutput, parts: Sequence[RequestOutput], waiting: _Open) -> RequestOutput:
    """One result from its windows; `main` (the fullest window) speaks for the language."""
    tokens = tuple(t for part in parts for t in part.tokens[0])
    single = len(parts) == 1
    # Every token's posterior weighs the same, whichever window it fell into.
    weighed = [(p.confidence, len(p.tokens[0])) for p in parts if p.confidence is not None]
    total = sum(n for _, n in weighed)
    reasons = [part.finish_reason for part in parts]
    return RequestOutput(
        main.request_id,
        text=join_texts([part.text or "" for part in parts]),
        tokens=main.tokens if single else (tokens,),
        scores=main.scores if single else (sum(part.scores[0] for part in parts),),
        nbest_texts=main.nbest_texts if single else (),
        words=None if any(p.words is None for p in parts) else tuple(w for p in parts for w in p.words or ()),
        confidence=sum(c * n for c, n in weighed) / total if total else None,
        finish_reason="length" if "length" in reasons else "stop",
        language=main.language,
        language_probability=main.language_probability,
        duration_s=waiting.duration_s,
        segments=tuple(segment for part in parts for segment in part.segments),
        warnings=waiting.warnings,
        latency_s=max(part.latency_s for part in parts),
    )


def join_texts(texts: Sequence[str]) -> str:
    """Join window texts: a space between them, none between two characters of a space-less script."""
    joined = ""
    for text in texts:
        if joined and text and not (_spaceless(joined[-1]) and _spaceless(text[0])):
            joined += " "
        joined += text
    return joined


def _spaceless(char: str) -> bool:
    """True for CJK ideographs, kana, and their punctuation and full-width forms."""
    code = ord(char)
    return (
        0x3000 <= code <= 0x30FF
        or 0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF00 <= code <= 0xFFEF
    )
