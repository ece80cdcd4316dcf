"""Shared machinery of label-synchronous families: groups, budget loop, merging, row retirement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from oasr.decode.attention_align import AttentionAligner, Untimed
from oasr.decode.groups import Group, Row
from oasr.decode.options import option
from oasr.decode.sampling import select_next_tokens
from oasr.decode.strategy import DecodeStrategy, NBest
from oasr.errors import DecodeError
from oasr.models.interfaces import EncoderOutput
from oasr.types import Hypothesis, Request

if TYPE_CHECKING:
    from oasr.executor.budget import StepBudget


@dataclass(frozen=True, slots=True)
class ArOptions:
    """Options that every label-synchronous family has."""

    merge_groups: bool = option(True, doc="Let freshly prefilled rows join rows that are already decoding.")


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A micro-batch behind its prompts: its rows, cache and first logits (B, V) float32."""

    rows: list[Row]
    state: Any
    logits: Tensor


class IncrementalArStrategy(DecodeStrategy):
    """Base of the incremental families: they add prefill, logit filtering and the end predicate.

    A subclass implements `prefill` and `end_ids`, and may override `filter_logits` and `hypothesis`. One that
    can time words sets `aligner`: rows that asked for it wait, finished, until they fill a forward or
    nothing else decodes.
    """

    incremental: ClassVar[bool] = True
    options_cls: ClassVar[type] = ArOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """See DecodeStrategy."""
        super().__init__(*args, **kwargs)
        self._groups: list[Group] = []
        self._finished: list[tuple[Request, NBest]] = []
        self._untimed: list[Untimed] = []
        self.aligner: AttentionAligner | None = None

    # What a family adds -----------------------------------------------------------------------

    def prefill(self, encoder_out: EncoderOutput, requests: Sequence[Request]) -> Prefilled:
        """Run the prompts of a micro-batch through the decoder."""
        raise NotImplementedError(f"{type(self).__name__} must implement prefill")

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end a row."""
        raise NotImplementedError(f"{type(self).__name__} must implement end_ids")

    def filter_logits(self, logits: Tensor, rows: Sequence[Row]) -> Tensor:
        """Mask what may not be emitted now; logits is (B, V) float32 and may be changed in place."""
        return logits

    def hypothesis(self, row: Row) -> Hypothesis:
        """The result of a finished row."""
        return Hypothesis(tuple(row.tokens), row.score, row.confidence, row.finish_reason or "stop")

    # The protocol -----------------------------------------------------------------------------

    def begin_offline(self, encoder_out: EncoderOutput, requests: Sequence[Request]) -> None:
        """Prefill a micro-batch, choose its first tokens, and let it join rows that decode already.

        A step's cost hardly depends on its rows, so two groups cost about twice one.
        """
        if self.device.type == "cpu":
            # Finished rows that are carried keep an encoder window each, of the size of those made now.
            for group in self._groups:
                group.compact(self.model.decoder, now=True)
        start = self.prefill(encoder_out, requests)
        group = Group(start.rows, start.state, start.logits.new_zeros(len(requests), dtype=torch.int64))
        finished, untimed = len(self._finished), len(self._untimed)
        try:
            self._choose(group, start.logits)
            self._place(group)
        except Exception:
            # The whole micro-batch is tried again, rows that ended at their first token too.
            del self._finished[finished:]
            del self._untimed[untimed:]
            raise

    def _place(self, group: Group) -> None:
        """Let a new group join one that decodes, or stand beside them."""
        if not group.rows:
            return
        decoder = self.model.decoder
        for other in self._groups if self.options.merge_groups else ():
            if decoder.can_merge(other.state, group.state):
                other.absorb(group, decoder)
                return
        self._groups.append(group)

    def has_pending(self) -> bool:
        """True while rows decode or finished ones wait to be handed out."""
        return bool(self._groups or self._finished or self._untimed)

    def pending_rows(self) -> int:
        """Rows that hold a cache: those that still decode, and those that wait for word times."""
        return sum(len(group.live) for group in self._groups) + len(self._untimed)

    def abort(self) -> list[Request]:
        """Drop everything and return the requests that were not handed out, finished ones included."""
        requests = [request for request, _ in self._finished]
        requests += [one.row.request for one in self._untimed]
        requests += [group.rows[i].request for group in self._groups for i in group.live]
        self._groups, self._finished, self._untimed = [], [], []
        return requests

    def advance(self, budget: StepBudget) -> list[tuple[Request, NBest]]:
        """Step the groups in turn until the budget is spent, rows finish or nothing is left.

        Handing rows out as soon as some finish lets the executor refill the freed slots.
        """
        while self._groups and not (self._finished or self._time_is_due) and budget.take():
            group = self._groups[0]
            logits = self.model.decoder.step(group.last, group.state)
            self._choose(group, logits)
            # To the back of the queue: groups that cannot merge take turns.
            self._groups = self._groups[1:] + ([group] if group.rows else [])
        if self._time_is_due or not self._groups:
            self._time_words()
        finished, self._finished = self._finished, []
        return finished

    def _choose(self, group: Group, logits: Tensor) -> None:
        """Choose one token a row from `logits`, retire the rows that end, drop dead weight."""
        group.last, log_probs = select_next_tokens(self.filter_logits(logits, group.rows), group.rows)
        # Here a step waits for the device: which rows end is known on the host only.
        tokens, scores = group.last.tolist(), log_probs.tolist()
        if not all(math.isfinite(scores[i]) for i in group.live):
            # The largest of no numbers is token 0, over and over: a transcript that nobody said.
            raise DecodeError(
                "no token has a probability: the model's output is not a number; check that the samples lie "
                "within [-1, 1], the checkpoint and --dtype"
            )
        for i in group.live:
            row = group.rows[i]
            row.push(tokens[i], scores[i], tokens[i] in self.end_ids)
            if row.finish_reason is not None:
                try:
                    self._retire(group, i)
                except Exception:
                    # It is nowhere yet: as a live row it is among those that `abort` gives back.
                    row.finish_reason = None
                    raise
        group.compact(self.model.decoder)

    def _retire(self, group: Group, i: int) -> None:
        """Hand row `i` out, or keep its windows until it is timed (not if it will be decoded again)."""
        row = group.rows[i]
        best = self.hypothesis(row)
        timed = self.aligner is not None and row.request.options.word_timestamps and best.tokens
        if timed and self.reconsider(row.request, (best,)) is None:
            windows = self.model.decoder.windows(group.state, torch.tensor([i]))
            self._untimed.append(Untimed(row, best, windows))
        else:
            self._finished.append((row.request, (best,)))

    @property
    def _time_is_due(self) -> bool:
        """True when the waiting rows fill a forward."""
        return self.aligner is not None and len(self._untimed) >= self.aligner.rows_at_once

    def _time_words(self) -> None:
        if self.aligner is None:
            return
        timed = self.aligner.time_words(self._untimed)
        self._finished += [(u.row.request, (best,)) for u, best in zip(self._untimed, timed, strict=True)]
        self._untimed = []
