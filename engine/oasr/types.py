"""The typed values that travel between the stations of a run. Imports neither torch nor numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from oasr.errors import OptionsError, RowError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Utterance:
    """One row of the input list: a stretch of one recording, and what the row says about it.

    Attributes:
        id: unique name of the row in its list; output names come from it.
        audio: path of the recording, or `""` when `samples` carries the audio itself.
        index: position in the list (0-based, failures counted), which fixes the output order.
        offset: start of the stretch in seconds of the recording.
        duration: length of the stretch in seconds; None = to the end of the recording.
        channel: None = as the run says; an int picks one channel; "mix" or "split" as the flags do.
        part: channel number of a row made by splitting channels, else 0; orders rows of one index.
        parts: how many rows were made so of this index, each with a result of its own; 1 of a whole row.
        command: a shell pipe that produces the audio (Kaldi `cmd |`); only with explicit consent.
        samples: float32 samples (frames,) or (frames, channels), with `sample_rate`.
        text: the reference transcript, when the row has one.
        row: the row's own keys and values, carried into the result unchanged.
        origin: where the row stands, as `file:line`, for messages.
    """

    id: str
    audio: str = ""
    index: int = 0
    offset: float = 0.0
    duration: float | None = None
    channel: int | str | None = None
    part: int = 0
    parts: int = 1
    command: str | None = None
    samples: np.ndarray | None = field(default=None, repr=False, compare=False)
    sample_rate: int | None = None
    text: str | None = None
    language: str | None = None
    task: str | None = None
    prompt: str | None = None
    row: Mapping[str, Any] = field(default_factory=dict, compare=False)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class RowFailure:
    """A row that failed before or during the run; becomes one error row, never a lost one.

    `part` and `parts` are those of the Utterance: a split recording that breaks midway fails once a channel.
    """

    id: str
    index: int
    stage: str
    message: str
    part: int = 0
    parts: int = 1
    row: Mapping[str, Any] = field(default_factory=dict, compare=False)
    origin: str = ""

    @classmethod
    def of(cls, utterance: Utterance, error: RowError) -> RowFailure:
        """The failure record of `utterance` for `error`."""
        return cls(
            utterance.id,
            utterance.index,
            error.stage,
            str(error),
            utterance.part,
            utterance.parts,
            utterance.row,
            utterance.origin,
        )


@dataclass(frozen=True, slots=True)
class Waveform:
    """Mono audio at a known rate.

    Attributes:
        samples: (frames,) float32, nominally within [-1, 1].
        sample_rate: Hz.
        duration_s: seconds of the stretch in the original recording.
        warnings: what the reader had to put up with (a truncated body, channels that cancel).
    """

    samples: np.ndarray
    sample_rate: int
    duration_s: float
    warnings: tuple[str, ...] = ()


_OPTION_KINDS: tuple[tuple[tuple[str, ...], type, str], ...] = (
    (("n_best", "max_new_tokens", "top_k", "seed"), Integral, "an integer"),
    (("temperature", "top_p"), Real, "a number"),
    (("prompt", "task", "language"), str, "a string"),
    (("word_timestamps",), bool, "True or False"),
)
_OPTIONAL_OPTIONS = ("max_new_tokens", "prompt", "task", "language")


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """What one request asks of the decoder. Frozen; validated once, here.

    `task`, `language`, `prompt` and `word_timestamps` select *what* is decoded: a family that
    cannot honour one refuses the request at admission (`DecodeStrategy.validate_options`).
    `top_k`, `top_p` and `seed` shape the sampling, so they act at a temperature above 0 only.
    """

    n_best: int = 1
    max_new_tokens: int | None = None
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    prompt: str | None = None
    task: str | None = None
    language: str | None = None
    word_timestamps: bool = False

    def __post_init__(self) -> None:
        """Raise OptionsError for a value of another type or outside its range, naming what is expected."""
        for names, kind, expected in _OPTION_KINDS:
            for name in names:
                value = getattr(self, name)
                # To Python, True is an Integral.
                odd = isinstance(value, bool) and kind is not bool
                if odd or not (isinstance(value, kind) or (value is None and name in _OPTIONAL_OPTIONS)):
                    raise OptionsError(f"{name}: expected {expected}, got {value!r}")
        checks = (
            (self.n_best >= 1, "n_best", "an integer >= 1"),
            (self.max_new_tokens is None or self.max_new_tokens >= 1, "max_new_tokens", "an integer >= 1"),
            (
                self.temperature == 0 or 0.01 <= self.temperature <= 100,
                "temperature",
                "0 or within 0.01..100",
            ),
            (self.top_k >= 0, "top_k", "an integer >= 0 (0 = off)"),
            (0 < self.top_p <= 1, "top_p", "within (0, 1]"),
            (self.task in (None, "transcribe", "translate"), "task", "transcribe or translate"),
            # Half a surrogate pair, as in a flag whose bytes are not UTF-8: no tokenizer could read it.
            (
                not any("\ud800" <= c <= "\udfff" for c in self.prompt or ""),
                "prompt",
                "text that UTF-8 can write",
            ),
        )
        for good, name, expected in checks:
            if not good:
                raise OptionsError(f"{name}: expected {expected}, got {getattr(self, name)!r}")

    @classmethod
    def coerce(cls, value: DecodingOptions | Mapping[str, Any] | None) -> DecodingOptions:
        """`value` as DecodingOptions; a mapping may name any of the fields, an unknown one is refused."""
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise OptionsError(f"options: expected DecodingOptions or a mapping of its fields, got {value!r}")
        known = [f.name for f in fields(cls)]
        given: dict[str, Any] = dict(value)
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise OptionsError(f"unknown decoding option {', '.join(unknown)}; known: {', '.join(known)}")
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Request:
    """One stretch of audio admitted to the engine: a whole utterance, or one window of it.

    Attributes:
        id: the utterance's id.
        samples: (frames,) float32 at the model's rate.
        key: the engine's own number for the utterance; ids may repeat across runs, keys do not.
        options: validated decoding options of this row.
        window: index of this window in its utterance (0-based).
        start_s: start of the window in seconds of the original recording.
        cut_s: where this window takes over from the one before, in the same seconds, when both hold what
            lies around it; else None.
        admitted_at: `time.perf_counter()` at admission.
        attempt: 0 for the first decode; a family that asks for another one counts up.
    """

    id: str
    samples: np.ndarray = field(repr=False, compare=False)
    sample_rate: int
    options: DecodingOptions = field(default_factory=DecodingOptions)
    key: int = 0
    window: int = 0
    start_s: float = 0.0
    cut_s: float | None = None
    admitted_at: float = 0.0
    attempt: int = 0

    @property
    def duration_s(self) -> float:
        """Seconds of audio in this window."""
        return len(self.samples) / self.sample_rate


@dataclass(frozen=True, slots=True)
class WordTiming:
    """One word, a literal substring of the text, in seconds of the original recording."""

    word: str
    start: float
    end: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One decoded candidate.

    Attributes:
        tokens: label ids, special and end tokens removed.
        score: total log-probability in nats, as the family defines it.
        confidence: mean token posterior in [0, 1]; None when the family has no posterior.
        finish_reason: "stop" or "length".
        language, language_probability: what the family detected or was told.
        words, timestamps: the words, and the start and end of each token, in seconds of the original
            recording; None unless word times were asked for (`decode.alignment` makes both).
    """

    tokens: tuple[int, ...]
    score: float
    confidence: float | None = None
    finish_reason: str = "stop"
    language: str | None = None
    language_probability: float | None = None
    words: tuple[WordTiming, ...] | None = None
    timestamps: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """The result of one request or, after joining, of one utterance.

    Attributes:
        request_id: the id given at admission.
        text: the transcript ("" for silence); None when `error_stage` is set.
        tokens, scores: n-best label ids and their total log-probabilities, best first.
        words: the words of the best text, each a literal substring of it, in order; None unless asked for.
        timestamps: start and end of each of its tokens in seconds of the recording; None unless asked for.
        confidence: mean posterior of its tokens in [0, 1]; None without tokens or posteriors.
        segments: (start_s, end_s, text) of each window, in order.
        speech: where somebody speaks, (start_s, end_s) in order; None when no detector was asked.
        latency_s: admission → result.
        finished: False for a part of a long recording that is handed out ahead of its result.
        error_stage, error_message: why there is no text.
    """

    request_id: str
    text: str | None = None
    tokens: tuple[tuple[int, ...], ...] = ()
    scores: tuple[float, ...] = ()
    nbest_texts: tuple[str, ...] = ()
    words: tuple[WordTiming, ...] | None = None
    timestamps: tuple[tuple[float, float], ...] | None = None
    confidence: float | None = None
    finish_reason: str | None = None
    language: str | None = None
    language_probability: float | None = None
    duration_s: float = 0.0
    segments: tuple[tuple[float, float, str], ...] = ()
    speech: tuple[tuple[float, float], ...] | None = None
    warnings: tuple[str, ...] = ()
    latency_s: float = 0.0
    finished: bool = True
    error_stage: str | None = None
    error_message: str | None = None

    @property
    def ok(self) -> bool:
        """True when the request produced a transcript (an empty one counts)."""
        return self.error_stage is None


def finite(value: object) -> float | None:
    """`value` as a finite float, or None when it is not a number that JSON can carry."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None
