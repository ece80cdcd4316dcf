"""Family `ctc_cuda`: CTC prefix beam search over the model's log-probabilities, on either device.

On a GPU the whole batch is one kernel launch and one copy back; on a CPU the same search is C++ threads over
rows. Emission frames come from the beam itself, so word times cost no second pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from oasr.decode.alignment import emission_fields, mean_posterior
from oasr.decode.options import option
from oasr.decode.pending import PendingReadback
from oasr.decode.strategy import DecodeStrategy, NBest, register_decode_strategy
from oasr.errors import DecodeError, OptionsError
from oasr.kernels.ctc_beam import CtcHypothesis, CtcSearch, decode, unpack, widest_beam
from oasr.models.interfaces import AsrModel, EncoderOutput
from oasr.types import Hypothesis, Request

if TYPE_CHECKING:
    from oasr.config import EngineConfig


@dataclass(frozen=True, slots=True)
class CtcOptions:
    """Options of the `ctc_cuda` family."""

    beam_size: int = option(10, doc="Prefixes kept after each frame; 1 is the best path (greedy).")
    blank_threshold: float = option(
        1.0,
        doc="Leave out frames whose blank probability is at least this, which is faster and changes scores; "
        "1 keeps all.",
    )
    nbest: int = option(
        1, doc="Hypotheses of every row; a row that asks for more (--n-best) gets more, up to beam_size."
    )

    def __post_init__(self) -> None:
        """Raise OptionsError for a value outside its range."""
        if self.beam_size < 1:
            raise OptionsError(f"beam_size: expected an integer >= 1, got {self.beam_size}")
        if not 0 < self.blank_threshold <= 1:
            raise OptionsError(f"blank_threshold: expected within (0, 1], got {self.blank_threshold!r}")
        if not 1 <= self.nbest <= self.beam_size:
            raise OptionsError(f"nbest: expected 1 to beam_size ({self.beam_size}), got {self.nbest}")


@register_decode_strategy("ctc_cuda")
class CtcGpuDecodeStrategy(DecodeStrategy):
    """CTC prefix beam search (beam_size 1: greedy), one launch a batch on a GPU, C++ on a CPU."""

    capability: ClassVar[str] = "ctc"
    consumes: ClassVar[Literal["log_probs", "hidden", "both"]] = "log_probs"
    options_cls: ClassVar[type] = CtcOptions
    options: CtcOptions

    def __init__(self, model: AsrModel, options: Any, config: EngineConfig) -> None:
        """Raise OptionsError for a beam that no search over this vocabulary can have."""
        super().__init__(model, options, config)
        # A model from elsewhere need not tell its labels: then the search itself refuses, row by row.
        vocab = getattr(self.model, "vocab_size", None)
        if vocab is not None and options.beam_size > (most := widest_beam(vocab)):
            raise OptionsError(
                f"beam_size: expected at most {most} with a vocabulary of {vocab}, got {options.beam_size}"
            )

    @property
    def word_timing_modes(self) -> tuple[str, ...]:
        """The beam records the frame of every token as it decodes."""
        return ("offline",)

    @property
    def max_n_best(self) -> int:
        """The whole beam."""
        return self.options.beam_size

    def decode_offline(self, encoder_out: EncoderOutput, requests: Sequence[Request]) -> list[NBest]:
        """Decode and wait."""
        return self.decode_offline_async(encoder_out, requests).collect()

    def decode_offline_async(
        self, encoder_out: EncoderOutput, requests: Sequence[Request]
    ) -> PendingReadback:
        """Queue the search and the copy of its results."""
        if encoder_out.log_probs is None:
            raise DecodeError(f"the {self.model.architecture} encoder gave no log-probabilities to decode")
        # One number for the batch, whose results are a rectangle; `_nbest` cuts out what each row asked for.
        wanted = max([self.options.nbest, *(request.options.n_best for request in requests)])
        packed = decode(encoder_out.log_probs, encoder_out.lengths, self.search(wanted))

        def finish(tensors: list[Tensor]) -> list[NBest]:
            return [self._nbest(*pair) for pair in zip(unpack(tensors[0]), requests, strict=True)]

        return PendingReadback([packed], finish)

    def search(self, nbest: int) -> CtcSearch:
        """The options as the kernel takes them, for so many hypotheses."""
        return CtcSearch(self.options.beam_size, self.model.blank_id, self.options.blank_threshold, nbest)

    def _nbest(self, found: Sequence[CtcHypothesis], request: Request) -> NBest:
        require_probable(found[0])
        count = max(self.options.nbest, request.options.n_best)
        # Only the best gets word times.
        best, *others = found[:count]
        return (self._hypothesis(best, request), *(self._hypothesis(one) for one in others))

    def _hypothesis(self, found: CtcHypothesis, timed_for: Request | None = None) -> Hypothesis:
        """`found` for the caller, with word times when a request is given that asks for them."""
        timed: dict[str, Any] = {"confidence": mean_posterior(found.log_probs.tolist())}
        if timed_for is not None and timed_for.options.word_timestamps and self.clock is not None:
            pieces = self.model.tokenizer.token_pieces(found.tokens)
            timed = {**emission_fields(pieces, found.frames, found.log_probs, self.clock, timed_for)}
        return Hypothesis(found.tokens, found.score, **timed)


def require_probable(best: CtcHypothesis) -> None:
    """Raise DecodeError when not even the best hypothesis is possible."""
    if not np.isfinite(best.score):
        raise DecodeError(
            "no transcript has a probability above 0: the model's log-probabilities are minus infinity "
            "or not a number; check the checkpoint and --dtype"
        )
