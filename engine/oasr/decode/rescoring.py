"""Family `ctc_aed_rescoring` (U2 and U2++): the CTC n-best, put in order by the attention decoders.

Zhang et al. 2021 and 2022. The first pass is that of `ctc_cuda`. The second scores all hypotheses of the
batch in one teacher-forced forward a direction, the end of the sentence included:

    score = (1 - reverse_weight) · Σ log p(l2r) + reverse_weight · Σ log p(r2l) + ctc_weight · log p(CTC)

Emission frames, and so word times, are those the winner had in the first pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oasr.decode.ctc_gpu import CtcGpuDecodeStrategy, require_probable
from oasr.decode.options import option
from oasr.decode.pending import PendingReadback
from oasr.decode.strategy import NBest, register_decode_strategy
from oasr.errors import DecodeError, OptionsError
from oasr.kernels.ctc_beam import CtcHypothesis, decode, unpack
from oasr.models.interfaces import AsrModel, EncoderOutput
from oasr.types import Request

if TYPE_CHECKING:
    from oasr.config import EngineConfig

_TOKENS_AT_ONCE = 1 << 17
"""Padded labels of one decoder forward, which bounds its memory; results do not depend on it."""


@dataclass(frozen=True, slots=True)
class RescoringOptions:
    """Options of the `ctc_aed_rescoring` family."""

    ctc_weight: float = option(
        0.5, doc="Weight of the CTC score beside the decoders'.", legacy="rescoring_ctc_weight"
    )
    reverse_weight: float | None = option(
        None,
        doc="Share of the right-to-left decoder, 0 to 1; none = the checkpoint's.",
        legacy="rescoring_reverse_weight",
    )
    beam_size: int = option(10, doc="Prefixes kept after each frame of the CTC pass.")
    nbest: int | None = option(None, doc="Hypotheses that are rescored; none = the whole beam.")
    blank_threshold: float = option(
        1.0, doc="Leave out frames whose blank probability is at least this (as in ctc_cuda); 1 keeps all."
    )
    demote_empty_hyps: bool = option(False, doc="Put the empty hypothesis behind all others.")

    def __post_init__(self) -> None:
        """Raise OptionsError for a value outside its range."""
        if not math.isfinite(self.ctc_weight):
            raise OptionsError(f"ctc_weight: expected a finite number, got {self.ctc_weight!r}")
        if self.reverse_weight is not None and not 0 <= self.reverse_weight <= 1:
            raise OptionsError(f"reverse_weight: expected within [0, 1], got {self.reverse_weight!r}")
        if self.beam_size < 1:
            raise OptionsError(f"beam_size: expected an integer >= 1, got {self.beam_size}")
        if not 1 <= self.rescored <= self.beam_size:
            raise OptionsError(f"nbest: expected 1 to beam_size ({self.beam_size}), got {self.nbest}")
        if not 0 < self.blank_threshold <= 1:
            raise OptionsError(f"blank_threshold: expected within (0, 1], got {self.blank_threshold!r}")

    @property
    def rescored(self) -> int:
        """Hypotheses of the second pass."""
        return self.beam_size if self.nbest is None else self.nbest


@register_decode_strategy("ctc_aed_rescoring")
class CtcAedRescoringStrategy(CtcGpuDecodeStrategy):
    """CTC n-best, then one teacher-forced pass of the decoders over all of it."""

    capability: ClassVar[str] = "ctc_aed_rescoring"
    consumes: ClassVar[Literal["log_probs", "hidden", "both"]] = "both"
    options_cls: ClassVar[type] = RescoringOptions
    options: RescoringOptions  # type: ignore[assignment]

    def __init__(self, model: AsrModel, options: RescoringOptions, config: EngineConfig) -> None:
        """Raise OptionsError for a beam too wide, or a share of a decoder that the checkpoint lacks."""
        super().__init__(model, options, config)
        asked = options.reverse_weight
        if asked and self.model.decoder.right is None:
            raise OptionsError(
                f"reverse_weight: expected 0 or none, got {asked}: there is no right-to-left decoder"
            )
        self.reverse_weight = float(self.model.reverse_weight if asked is None else asked)

    @property
    def max_n_best(self) -> int:
        """What the second pass sees."""
        return self.options.rescored

    def decode_offline_async(
        self, encoder_out: EncoderOutput, requests: Sequence[Request]
    ) -> PendingReadback:
        """Queue the first pass; collecting its results runs the second, behind the next batch's forward."""
        hidden, lengths, log_probs = encoder_out.hidden, encoder_out.lengths, encoder_out.log_probs
        if hidden is None or log_probs is None:
            raise DecodeError(
                f"the {self.model.architecture} encoder gave no states, or no log-probabilities"
            )
        packed = decode(log_probs, lengths, self.search(self.options.rescored))

        def finish(tensors: list[Tensor]) -> list[NBest]:
            found = unpack(tensors[0])
            scores = self._rescored(found, hidden, lengths)
            return [self._in_new_order(*row) for row in zip(found, scores, requests, strict=True)]

        return PendingReadback([packed], finish)

    def _rescored(
        self, found: Sequence[tuple[CtcHypothesis, ...]], hidden: Tensor, lengths: Tensor
    ) -> list[NDArray[np.float64]]:
        """The fused score of every hypothesis of every row."""
        # A decoder also reads the start of the sentence.
        longest = 1 + max((len(h.tokens) for row in found for h in row), default=0)
        at_once = max(1, _TOKENS_AT_ONCE // (self.options.rescored * longest))
        fused: list[NDArray[np.float64]] = []
        for first in range(0, len(found), at_once):
            rows = slice(first, first + at_once)
            sums = self._decoder_scores(found[rows], hidden[rows], lengths[rows])
            fused += [self._fused(*row) for row in zip(found[rows], sums, strict=True)]
        return fused

    def _decoder_scores(
        self, found: Sequence[tuple[CtcHypothesis, ...]], hidden: Tensor, lengths: Tensor
    ) -> NDArray[np.float64]:
        """(B, n) weighted sums of both directions; places without a hypothesis hold that of an empty one."""
        sizes = torch.zeros(len(found), max(map(len, found)), dtype=torch.int64)
        for row, hypotheses in enumerate(found):
            sizes[row, : len(hypotheses)] = torch.tensor([len(h.tokens) for h in hypotheses])
        tokens = torch.zeros(*sizes.shape, int(sizes.max()), dtype=torch.int64)
        for row, hypotheses in enumerate(found):
            for rank, one in enumerate(hypotheses):
                tokens[row, rank, : len(one.tokens)] = torch.tensor(one.tokens, dtype=torch.int64)
        decoder = self.model.decoder
        memory, device, share = decoder.memory(hidden, lengths), hidden.device, self.reverse_weight
        tokens, sizes = tokens.to(device), sizes.to(device)
        # A direction without weight is not run: 0 · -inf would not be a number.
        total = torch.zeros(sizes.shape, dtype=torch.float64, device=device)
        if share < 1:
            total += (1 - share) * decoder.score(memory, tokens, sizes)
        if share > 0:
            total += share * decoder.score(memory, tokens, sizes, reverse=True)
        # A row without frames gives the decoders nothing to look at.
        scores: NDArray[np.float64] = total.cpu().masked_fill_((lengths == 0)[:, None], 0.0).numpy()
        return scores

    def _fused(self, found: tuple[CtcHypothesis, ...], sums: NDArray[np.float64]) -> NDArray[np.float64]:
        ctc = np.array([one.score for one in found])
        sums = sums[: len(found)]
        return sums + self.options.ctc_weight * ctc if self.options.ctc_weight else sums

    def _in_new_order(
        self, found: tuple[CtcHypothesis, ...], scores: NDArray[np.float64], request: Request
    ) -> NBest:
        """The best hypotheses with their fused scores; equal ones stay in the order of the first pass."""
        require_probable(found[0])
        # One that is not a number makes the maximum none: what it should be could be the best.
        if not np.isfinite(scores.max()):
            raise DecodeError(
                "no transcript can be chosen: the attention decoders' scores are minus infinity or not a "
                "number; check the checkpoint and --dtype"
            )
        last = np.array([self.options.demote_empty_hyps and not one.tokens for one in found])
        # The last key of lexsort counts first.
        order = np.lexsort((np.arange(len(found)), -scores, last))[: request.options.n_best]
        # Only the winner gets word times.
        timed = (request, *[None] * len(found))
        return tuple(
            replace(self._hypothesis(found[i], who), score=float(scores[i]))
            for i, who in zip(order, timed, strict=False)
        )
