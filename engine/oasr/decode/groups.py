"""Rows that decode together, and when to drop the finished ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from oasr.decode.alignment import mean_posterior
from oasr.types import Request


@dataclass(slots=True, eq=False)
class Row:
    """One request while it is being decoded.

    Attributes:
        limit: most tokens this row may emit.
        tokens: label ids emitted so far, without the end token.
        score: sum of their log-probabilities in nats, the end token's included.
        log_probs: the emitted tokens' log-probabilities, the end token's excluded.
        facts: what the family keeps about the row (detected language, no-speech probability).
    """

    request: Request
    limit: int
    tokens: list[int] = field(default_factory=list)
    score: float = 0.0
    log_probs: list[float] = field(default_factory=list)
    finish_reason: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def confidence(self) -> float | None:
        """Mean posterior of the emitted tokens in [0, 1]; None when there are none."""
        return mean_posterior(self.log_probs)

    def push(self, token: int, log_prob: float, ends: bool) -> None:
        """Account for one chosen token; a token that ends the row counts in the score only."""
        self.score += log_prob
        if ends:
            self.finish_reason = "stop"
            return
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        if len(self.tokens) >= self.limit:
            self.finish_reason = "length"


@dataclass(slots=True, eq=False)
class Group:
    """Rows that step together: row i of `state` and of `last` belongs to `rows[i]`.

    Attributes:
        state: the decoder's cache.
        last: (B,) int64 token that each row feeds to the next step, on the device.
        wasted: row-steps spent on finished rows since the last compaction.
    """

    rows: list[Row]
    state: Any
    last: Tensor
    wasted: int = 0

    @property
    def live(self) -> list[int]:
        """Positions of the rows that still decode."""
        return [i for i, row in enumerate(self.rows) if row.finish_reason is None]

    def compact(self, decoder: Any, now: bool = False) -> None:
        """Drop finished rows, `now` or once carrying them has cost about as much as the copy that drops them.

        A step reads each row's cache once; a compaction reads and writes the live rows' once. So
        compacting after two wasted row-steps a live row is within a factor of two of the best
        schedule, whatever the lengths turn out to be.
        """
        live = self.live
        dead = len(self.rows) - len(live)
        self.wasted += dead
        # Without live rows nothing is copied: the owner drops the group, cache and all.
        if not dead or (live and not now and self.wasted < 2 * len(live)):
            return
        if live:
            index = torch.tensor(live, dtype=torch.int64, device=self.last.device)
            self.state = decoder.select(self.state, index)
            self.last = self.last.index_select(0, index)
        self.rows = [self.rows[i] for i in live]
        self.wasted = 0

    def absorb(self, other: Group, decoder: Any) -> None:
        """Take over the rows of `other`, whose state must be mergeable with this one's."""
        # Both, or neither when memory runs out: the rows here go on, those of `other` are tried again.
        state, last = decoder.merge(self.state, other.state), torch.cat([self.last, other.last])
        self.state, self.last = state, last
        self.rows += other.rows
        self.wasted += other.wasted
