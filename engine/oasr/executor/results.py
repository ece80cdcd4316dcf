"""Hypotheses → text, and which windows belong to one utterance."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

from oasr.errors import RowError
from oasr.executor.joining import join_texts, whole
from oasr.executor.overlap import join_overlap
from oasr.executor.rescue import Outcome
from oasr.tokenizers.base import Tokenizer
from oasr.types import RequestOutput


@dataclass(frozen=True, slots=True)
class Ended:
    """What is known of an utterance once its last window is on its way.

    Attributes:
        windows: how many there are.
        duration_s: seconds of the stretch in the original recording.
        end_s: where it ends in the recording. Resampled windows may reach a fraction of a sample beyond.
        warnings, speech: as in RequestOutput.
        error: why the utterance fails whatever comes of its windows.
    """

    windows: int
    duration_s: float
    end_s: float = math.inf
    warnings: tuple[str, ...] = ()
    speech: tuple[tuple[float, float], ...] | None = None
    error: RowError | None = None


@dataclass(slots=True)
class _Open:
    """An utterance whose windows are still on their way.

    `parts` are the results of its first windows, in order; those of later ones wait in `early`, each with its
    Request.cut_s. All parts but the last are final: the next window may share words with that.
    """

    name: str
    since: float
    ended: Ended | None = None
    parts: list[RequestOutput] = field(default_factory=list)
    early: dict[int, tuple[float | None, RequestOutput]] = field(default_factory=dict)
    shown: int = 0
    n_best: int = 1


class ResultAssembler:
    """Collects window results and hands out one RequestOutput an utterance, when its last one lands.

    Attributes:
        partial: also hand out the windows of an utterance that is not finished, in order, as soon as they
            are final: outputs with `finished` False, texts and segments.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """`tokenizer` renders token ids."""
        self.partial = False
        self._tokenizer = tokenizer
        self._open: dict[int, _Open] = {}

    def expect(self, key: int, name: str, admitted_at: float) -> None:
        """Announce the utterance `key` called `name`; the number of its windows may be known later."""
        self._open[key] = _Open(name, admitted_at)

    def end(self, key: int, ended: Ended) -> RequestOutput | None:
        """No more windows of the utterance will come; its result when all of them have landed."""
        self._open[key].ended = ended
        return self._finished(key)

    def add(self, outcome: Outcome) -> RequestOutput | None:
        """Account for one window; the whole utterance's result when it was the last."""
        request = outcome.request
        waiting = self._open[request.key]
        waiting.n_best = request.options.n_best
        waiting.early[request.window] = (
            request.cut_s,
            failure(request.id, outcome.error, request.admitted_at)
            if outcome.error
            else self._render(outcome),
        )
        while (found := waiting.early.pop(len(waiting.parts), None)) is not None:
            cut_s, part = found
            if cut_s is not None:
                waiting.parts[-1], part = join_overlap(waiting.parts[-1], part, cut_s, self._tokenizer.decode)
            waiting.parts.append(part)
        return self._finished(request.key) or (_news(waiting) if self.partial else None)

    def clear(self) -> None:
        """Forget utterances that will not be finished."""
        self._open.clear()

    def _finished(self, key: int) -> RequestOutput | None:
        waiting = self._open[key]
        if waiting.ended is None or len(waiting.parts) < waiting.ended.windows:
            return None
        del self._open[key]
        return _join(waiting, waiting.ended)

    def _render(self, outcome: Outcome) -> RequestOutput:
        request, best = outcome.request, outcome.hypotheses[0]
        texts = tuple(self._tokenizer.decode(h.tokens).strip() for h in outcome.hypotheses)
        words, timestamps = best.words, best.timestamps
        if request.options.word_timestamps and not best.tokens:
            # Nothing was said: that is a list of no words, not an unknown one.
            words, timestamps = (), ()
        end_s = request.start_s + request.duration_s
        return RequestOutput(
            request.id,
            text=texts[0],
            tokens=tuple(h.tokens for h in outcome.hypotheses),
            scores=tuple(h.score for h in outcome.hypotheses),
            nbest_texts=texts if max(request.options.n_best, len(texts)) > 1 else (),
            words=words,
            timestamps=timestamps,
            confidence=best.confidence,
            finish_reason=best.finish_reason,
            language=best.language,
            language_probability=best.language_probability,
            duration_s=request.duration_s,
            segments=((request.start_s, end_s, texts[0]),) if texts[0] else (),
            latency_s=time.perf_counter() - request.admitted_at,
        )


def failure(request_id: str, error: RowError, admitted_at: float) -> RequestOutput:
    """The result of a request that failed; `admitted_at` as in Request."""
    return RequestOutput(
        request_id,
        latency_s=time.perf_counter() - admitted_at,
        error_stage=error.stage,
        error_message=str(error),
        finish_reason="error",
    )


def _news(waiting: _Open) -> RequestOutput | None:
    """The parts that have become final since the last time; None when there are none."""
    parts = [part for part in waiting.parts[waiting.shown : -1] if part.ok]
    waiting.shown = max(waiting.shown, len(waiting.parts) - 1)
    if not parts:
        return None
    return RequestOutput(
        waiting.name,
        text=join_texts([part.text or "" for part in parts]),
        duration_s=sum(part.duration_s for part in parts),
        segments=tuple(segment for part in parts for segment in part.segments),
        latency_s=time.perf_counter() - waiting.since,
        finished=False,
    )


def _join(waiting: _Open, ended: Ended) -> RequestOutput:
    """Windows in order → one result; a failed window fails the utterance, since a hole would be silent."""
    joined = next((part for part in waiting.parts if not part.ok), None)
    if ended.error is not None:
        joined = failure(waiting.name, ended.error, waiting.since)
    if joined is None:
        joined = whole(waiting.parts, waiting.n_best, ended.end_s)
    return replace(
        joined,
        duration_s=ended.duration_s,
        speech=ended.speech,
        warnings=ended.warnings,
        latency_s=time.perf_counter() - waiting.since,
    )
