"""Family `aed`: attention encoder–decoder models that emit text after a control prompt (Whisper).

Greedy decoding over the batched decoder protocol, with Whisper's rules for prompts, suppressed
tokens and language detection (Radford et al. 2022, sections 2.3 and 4.5).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from oasr.decode.attention_align import AttentionAligner
from oasr.decode.groups import Row
from oasr.decode.incremental import ArOptions, IncrementalArStrategy, Prefilled
from oasr.decode.options import option
from oasr.decode.sampling import log_sum_exp
from oasr.decode.strategy import NBest, register_decode_strategy
from oasr.errors import OptionsError
from oasr.models.interfaces import EncoderOutput
from oasr.types import DecodingOptions, Hypothesis, Request

_FIRST_TOKENS = 48  # room for most transcripts of a window; the caches of the others grow

MOST_ALIGNED = 16
"""Finished rows that may wait for their word times, with their windows in memory."""


@dataclass(frozen=True, slots=True)
class AedOptions(ArOptions):
    """Options of the `aed` family."""

    window: str = option(
        "full",
        choices=("full", "auto"),
        doc="Encoder window of a clip: the model's own 30 s, or its own length plus a pad, "
        "with doubtful rows decoded again in full.",
    )
    # These defaults come from a sweep of pads and thresholds (docs/performance.md).
    window_pad_s: float = option(6.0, doc="Silence added to a clip under window=auto, in seconds.")
    window_round_s: float = option(2.0, doc="Windows under window=auto are rounded up to a multiple of this.")
    retry_compression_ratio: float = option(
        2.4, doc="Under window=auto, a text that compresses better than this is decoded again in full."
    )
    retry_mean_log_prob: float = option(
        -0.6,
        doc="Under window=auto, a row whose mean token log-probability is lower is decoded again in full.",
    )
    retry_tokens_per_s: float = option(
        9.0, doc="Under window=auto, a row with more tokens a second than this is decoded again in full."
    )
    no_speech_threshold: float | None = option(
        0.25,
        doc="Empty text when P(no speech) exceeds this and the mean log-probability is low too.",
    )
    no_speech_log_prob: float = option(
        -1.0, doc="Mean log-probability below which no_speech_threshold counts."
    )

    def __post_init__(self) -> None:
        """Raise OptionsError for a value outside its range."""
        finite = ("window_pad_s", "window_round_s", "retry_compression_ratio", "retry_tokens_per_s")
        for name in finite:
            value = getattr(self, name)
            least = 0.02 if name == "window_round_s" else 0.0
            if not (math.isfinite(value) and value >= least):
                raise OptionsError(f"{name}: expected a finite number >= {least:g}, got {value!r}")
        limit = self.no_speech_threshold
        if limit is not None and not 0 <= limit <= 1:
            raise OptionsError(f"no_speech_threshold: expected none or within 0..1, got {limit!r}")


@register_decode_strategy("aed")
class AedDecodeStrategy(IncrementalArStrategy):
    """Incremental greedy decoding of Whisper-shaped models."""

    capability: ClassVar[str] = "aed"
    options_cls: ClassVar[type] = AedOptions
    selective_options: ClassVar[tuple[str, ...]] = ("task", "language", "prompt")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """See DecodeStrategy."""
        super().__init__(*args, **kwargs)
        model = self.model
        self._end_ids = frozenset((model.eos_id,))
        self._suppress = self._ids(model.suppress_ids)
        self._begin_suppress = self._ids(model.begin_suppress_ids)
        if self.word_timing_modes and self.clock is not None:
            self.aligner = AttentionAligner(model, self.clock, min(MOST_ALIGNED, self.config.max_batch_size))

    def _ids(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor(sorted(ids), dtype=torch.int64, device=self.device)

    @property
    def word_timing_modes(self) -> tuple[str, ...]:
        """Offline, when the decoder tells where it looks."""
        return ("offline",) if hasattr(self.model.decoder, "cross_attention") else ()

    def validate_options(self, options: DecodingOptions, mode: str = "offline") -> None:
        """Also ask the checkpoint whether it knows the language and the task."""
        super().validate_options(options, mode)
        self.model.prompt_tokens(options, None)

    @property
    def end_ids(self) -> frozenset[int]:
        """The checkpoint's end-of-transcript token."""
        return self._end_ids

    # Windows ----------------------------------------------------------------------------------

    def window_samples(self, request: Request) -> int:
        """The model's window, or under window=auto the clip's own length, padded and rounded up."""
        full = self.model.frontend.window_samples(len(request.samples))
        if self.options.window == "full" or request.attempt > 0:
            return full
        # Whole encoder frames, and enough of them for one analysis window.
        frame = round(request.sample_rate * self.model.frame_shift_ms * self.model.subsampling_rate / 1000)
        unit = max(1, round(self.options.window_round_s * request.sample_rate / frame)) * frame
        wanted = max(4 * frame, len(request.samples) + round(self.options.window_pad_s * request.sample_rate))
        return min(full, -(-wanted // unit) * unit)

    def reconsider(self, request: Request, hypotheses: NBest) -> Request | None:
        """Under window=auto: the same request for the full window when the row looks wrong."""
        if not self._is_short(request) or not self._doubtful(request, hypotheses[0]):
            return None
        return replace(request, attempt=request.attempt + 1)

    def _doubtful(self, request: Request, best: Hypothesis) -> bool:
        """Loops compress well or run long for their audio; lost rows have a poor mean log-probability."""
        options, count = self.options, len(best.tokens)
        text = self.model.tokenizer.decode(best.tokens).encode()
        ratio = len(text) / len(zlib.compress(text)) if text else 0.0
        # One more than the tokens: the end token counts in the score.
        return (
            best.finish_reason == "length"
            or ratio > options.retry_compression_ratio
            or best.score / (count + 1) < options.retry_mean_log_prob
            or count > self._believable(request)
        )

    def _believable(self, request: Request) -> int:
        """Most tokens that a clip of that length is trusted with under window=auto."""
        return int(self.options.retry_tokens_per_s * request.duration_s) + 8

    def _is_short(self, request: Request) -> bool:
        """True for a request that is decoded in a window of its own, shorter than the model's."""
        full = self.model.frontend.window_samples(len(request.samples))
        return request.attempt == 0 and self.window_samples(request) < full

    # Prefill ----------------------------------------------------------------------------------

    def prefill(self, encoder_out: EncoderOutput, requests: Sequence[Request]) -> Prefilled:
        """Build each row's prompt (language detected where not given) and run the decoder over it."""
        model = self.model
        rows = [Row(request, limit=0) for request in requests]
        self._settle_languages(encoder_out, rows)
        prompts = [model.prompt_tokens(r.request.options, r.facts["language"]) for r in rows]
        longest = max(map(len, prompts))
        for row, prompt in zip(rows, prompts, strict=True):
            asked = row.request.options.max_new_tokens or self.config.max_new_tokens
            row.limit = min(asked, self.config.max_new_tokens, model.max_positions - len(prompt))
            if self._is_short(row.request):
                # More tokens than this are doubtful anyway: a loop need not run to its end.
                row.limit = min(row.limit, self._believable(row.request) + 1)
        # Left padding keeps the last prompt token of every row in the last column.
        padded = [[model.eos_id] * (longest - len(p)) + list(p) for p in prompts]
        tokens = torch.tensor(padded, dtype=torch.int64, device=self.device)
        lens = torch.tensor([len(p) for p in prompts], dtype=torch.int64)
        capacity = longest + min(_FIRST_TOKENS, max(row.limit for row in rows))
        # The SOT sequence has one length, so <|startoftranscript|> stands in one column.
        probe = longest - (len(prompts[0]) - prompts[0].index(model.sot_id))
        logits, after_sot, state = model.decoder.prefill_probed(tokens, encoder_out, capacity, lens, probe)
        if model.no_speech_id is not None:
            no_speech = (after_sot[:, model.no_speech_id].double() - log_sum_exp(after_sot)).exp()
            for row, probability in zip(rows, no_speech.tolist(), strict=True):
                row.facts["no_speech"] = probability
        return Prefilled(rows, state, logits)

    def _settle_languages(self, encoder_out: EncoderOutput, rows: Sequence[Row]) -> None:
        """The language of each row: as asked, else the checkpoint's own, else detected.

        That takes one step after <|startoftranscript|>.
        """
        model = self.model
        for row in rows:
            stated = model.stated_language(row.request.options)
            # A model from elsewhere may give back what was asked for as it was written.
            row.facts["language"] = None if stated is None else model.validate_language(stated)
        unknown = [i for i, row in enumerate(rows) if row.facts["language"] is None]
        if not unknown or not model.is_multilingual:
            return
        start = torch.full((len(unknown), 1), model.sot_id, dtype=torch.int64, device=self.device)
        logits, _ = model.decoder.prefill(start, encoder_out.rows(torch.tensor(unknown)), 1)
        # By id, as `_ids` sorts its columns too.
        codes, ids = zip(*sorted(model.language_ids.items(), key=lambda item: item[1]), strict=True)
        best = logits[:, self._ids(ids)].softmax(dim=-1).max(dim=-1)
        for i, p, k in zip(unknown, best.values.tolist(), best.indices.tolist(), strict=True):
            rows[i].facts.update(language=codes[k], language_probability=p)

    # Steps ------------------------------------------------------------------------------------

    def filter_logits(self, logits: Tensor, rows: Sequence[Row]) -> Tensor:
        """Mask the checkpoint's suppressed tokens, and on a row's first token the begin list too."""
        if self._suppress.numel():
            logits.index_fill_(1, self._suppress, -torch.inf)
        first = [i for i, row in enumerate(rows) if not row.tokens]
        if first and self._begin_suppress.numel():
            index = torch.tensor(first, dtype=torch.int64, device=logits.device)
            logits[index[:, None], self._begin_suppress[None, :]] = -torch.inf
        return logits

    def hypothesis(self, row: Row) -> Hypothesis:
        """The row's text tokens and language; no tokens where the model itself heard no speech."""
        tokens = () if self._silent(row) else tuple(row.tokens)
        return Hypothesis(
            tokens,
            row.score,
            row.confidence if tokens else None,
            row.finish_reason or "stop",
            row.facts["language"] if self.model.is_multilingual else "en",
            row.facts.get("language_probability"),
        )

    def _silent(self, row: Row) -> bool:
        """Whisper's rule for windows without speech: P(no speech) is high and the text is unlikely.

        Both must hold, so the probability may be lower than the 0.6 of the original, which misses loud
        noise; poorly heard speech has an unlikely text too, but a probability near zero.
        """
        limit = self.options.no_speech_threshold
        if limit is None or row.facts.get("no_speech", 0.0) <= limit:
            return False
        return row.score / (len(row.tokens) + 1) < self.options.no_speech_log_prob
