"""Word timings, the half that all families share: frames of tokens → words in seconds of the recording.

A family knows *when*, in encoder frames; this module hands that to the extension (include/oasr/alignment.h),
which cuts the words out of the text and times them. There is no second implementation in Python.

    pieces = tokenizer.token_pieces(ids)          # joined, they are the text
    fields = emission_fields(pieces, frames, log_probs, clock, request)     # CTC, transducer
    fields = span_fields(pieces, TokenAlignment(spans, log_probs), clock, request)   # aed, Paraformer
    Hypothesis(ids, score, **fields)

`emission_fields` is for decoders that emit a token at a frame: its span is the frames since the emission
before it. `span_fields` is for those that know where each token begins and ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from oasr.native import extension
from oasr.types import Request, WordTiming

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from oasr.models.interfaces import AsrModel


@dataclass(frozen=True, slots=True)
class FrameClock:
    """How long an encoder frame lasts."""

    seconds_per_frame: float

    @classmethod
    def of(cls, model: AsrModel) -> FrameClock | None:
        """The clock of `model`: its frame shift × low-frame-rate factor × subsampling.

        None when the model does not declare all three. A guess would shift every time by a constant
        factor and look entirely plausible, so requests for word times are refused then.
        """
        declared = (model.frame_shift_ms, model.lfr_n, model.subsampling_rate)
        numbers = [float(x) for x in declared if x is not None and math.isfinite(x) and x > 0]
        return cls(math.prod(numbers) / 1000) if len(numbers) == len(declared) else None


@dataclass(frozen=True, slots=True)
class TokenAlignment:
    """Where the tokens of one row lie.

    Attributes:
        spans: (n, 2) integers, the first frame of each token and the one after its last.
        log_probs: (n,) log-probability of each token in nats; its exponential counts as the posterior.
    """

    spans: ArrayLike
    log_probs: ArrayLike


class TimedFields(TypedDict):
    """The fields of a Hypothesis that come from its alignment; see there."""

    words: tuple[WordTiming, ...]
    timestamps: tuple[tuple[float, float], ...]
    confidence: float | None


def mean_posterior(log_probs: Iterable[float]) -> float | None:
    """Confidence of tokens with these log-probabilities in nats, within [0, 1]; None without tokens."""
    total, count = 0.0, 0
    # In order and with one rounding a step, as the extension does it: word times change no bit.
    for log_prob in log_probs:
        total += math.exp(min(log_prob, 0.0)) if log_prob <= math.inf else 0.0  # NaN counts as nothing
        count += 1
    return total / count if count else None


def emission_fields(
    pieces: Sequence[str], frames: ArrayLike, log_probs: ArrayLike, clock: FrameClock, request: Request
) -> TimedFields:
    """Words, token times and confidence of tokens that were emitted at known frames.

    Args:
        pieces: what each token adds to the text (`Tokenizer.token_pieces`).
        frames: (n,) frame of each emission, counted from the start of the request. The first token
            lasts for its frame, a later one since the frame after the emission before it.
        log_probs: (n,) log-probability of each token in nats.
        clock: the model's.
        request: its start and length place the frames in the recording, and no time lies outside.

    Raises:
        ValueError: lengths that differ.
    """
    call = extension().alignment.time_emissions
    return _fields(call(list(pieces), frames, log_probs, *_place(clock, request)))


def span_fields(
    pieces: Sequence[str], alignment: TokenAlignment, clock: FrameClock, request: Request
) -> TimedFields:
    """As `emission_fields`, for tokens whose first and last frames are known."""
    call = extension().alignment.time_spans
    place = _place(clock, request)
    return _fields(call(list(pieces), alignment.spans, alignment.log_probs, *place))


def _place(clock: FrameClock, request: Request) -> tuple[float, float, float]:
    return clock.seconds_per_frame, request.start_s, request.duration_s


def _fields(result: tuple[list[Any], list[Any], float]) -> TimedFields:
    words, times, confidence = result
    return {
        "words": tuple(WordTiming(*word) for word in words),
        "timestamps": tuple(times),
        "confidence": confidence if times else None,
    }
