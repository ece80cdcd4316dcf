"""Word times of family `aed`: dynamic time warping over the decoder's cross-attention.

A label-synchronous decoder has no frame index, so it is asked where it looked: some of its heads follow the
speech (Radford et al. 2022 publish them with the checkpoints). One forward over the finished text gives their
attention; each frame's weights are normalised over the tokens, smoothed by a median over frames and averaged
over heads, and a monotone path through the result says when each token was said. Pauses that the
recording shows are then taken out of the tokens (`decode.silence`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oasr.cache.windows import WindowStack
from oasr.decode.alignment import FrameClock, TokenAlignment, span_fields
from oasr.decode.groups import Row
from oasr.decode.silence import loud_frames, rest_marks, stop_at_pauses
from oasr.native import extension
from oasr.types import Hypothesis, Request

_STD_FLOOR = 1e-9
_HEADS_AT_ONCE = 16
_MEDIAN_WIDTH = 7
# Exchanges after which the fourth of seven values is their median (tested with all 0/1 inputs).
_MEDIAN_NETWORK = (
    (0, 5), (0, 3), (1, 6), (2, 4), (0, 1), (3, 5), (2, 6), (2, 3), (3, 6), (4, 5), (1, 4), (1, 3), (3, 4),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Untimed:
    """A finished row that waits for its word times, with its encoder windows (of one row)."""

    row: Row
    hypothesis: Hypothesis
    windows: WindowStack


class AttentionAligner:
    """Times the words of finished rows.

    Attributes:
        rows_at_once: rows that are worth one forward. On a CPU each row goes alone: there is
            nothing to gain, and its bits do not depend on the rows beside it.
    """

    def __init__(self, model: Any, clock: FrameClock, most_rows: int) -> None:
        """`model` offers `decoder.cross_attention` and `alignment_heads`."""
        self._model, self._clock = model, clock
        self._device = next(model.parameters()).device
        self.rows_at_once = 1 if self._device.type == "cpu" else most_rows

    def time_words(self, rows: Sequence[Untimed]) -> list[Hypothesis]:
        """The hypotheses of `rows` with words, token times and confidence."""
        timed: list[Hypothesis] = []
        for at in range(0, len(rows), self.rows_at_once):
            timed += self._time_batch(rows[at : at + self.rows_at_once])
        return timed

    def _time_batch(self, rows: Sequence[Untimed]) -> list[Hypothesis]:
        prompts = [self._prompt(one.row) for one in rows]
        texts = [self._text(prompt, one.hypothesis) for prompt, one in zip(prompts, rows, strict=True)]
        longest = max(map(len, texts))
        # What stands behind a row's last token cannot be seen by the tokens before it.
        padded = [text + text[-1:] * (longest - len(text)) for text in texts]
        tokens = torch.tensor(padded, dtype=torch.int64, device=self._device)
        windows = joined([one.windows for one in rows])
        weights = self._model.decoder.cross_attention(tokens, windows, self._model.alignment_heads)
        frames = [self._frames(one.row, weights.shape[3]) for one in rows]
        seen = weights[..., : max(frames)]
        scores = path_scores(seen, torch.tensor([len(text) for text in texts]), torch.tensor(frames))
        timed = []
        for own, prompt, count, one in zip(scores.cpu().numpy(), prompts, frames, rows, strict=True):
            first = len(prompt) - 1  # the token after which the first one of the text was chosen
            timed.append(self._timed(one, own[first : first + len(one.hypothesis.tokens) + 1, :count]))
        return timed

    def _timed(self, one: Untimed, scores: NDArray[np.float32]) -> Hypothesis:
        """The hypothesis with times by (tokens + 1, frames) `scores`, the last for the end of the text."""
        request, tokens = one.row.request, one.hypothesis.tokens
        pieces = self._model.tokenizer.token_pieces(tokens)
        spans = extension().alignment.warp(scores)[:-1]
        loud = loud_frames(request.samples, self._samples_per_frame(request), scores.shape[1])
        spans = rest_marks(stop_at_pauses(spans, loud), pieces)
        alignment = TokenAlignment(spans, one.row.log_probs[: len(tokens)])
        return replace(one.hypothesis, **span_fields(pieces, alignment, self._clock, request))

    def _prompt(self, row: Row) -> list[int]:
        """The control tokens alone: a text that came before was not said in this window."""
        options = replace(row.request.options, prompt=None)
        return list(self._model.prompt_tokens(options, row.facts.get("language")))

    def _text(self, prompt: list[int], hypothesis: Hypothesis) -> list[int]:
        """Prompt, text and end token, as far as there are positions: the end is only normalised with."""
        return [*prompt, *hypothesis.tokens, self._model.eos_id][: self._model.max_positions]

    def _frames(self, row: Row, most: int) -> int:
        """Encoder frames that hold the row's audio; the rest of its window is padding."""
        frames = math.ceil(len(row.request.samples) / self._samples_per_frame(row.request))
        return min(most, max(1, frames))

    def _samples_per_frame(self, request: Request) -> int:
        return round(request.sample_rate * self._clock.seconds_per_frame)


def joined(stacks: Sequence[WindowStack]) -> WindowStack:
    """One stack of all rows, joined pairwise so that each is copied few times."""
    while len(stacks) > 1:
        pairs = [a.join(b) for a, b in zip(stacks[::2], stacks[1::2], strict=False)]
        stacks = [*pairs, *stacks[2 * len(pairs) :]]
    return stacks[0]


def path_scores(weights: Tensor, tokens: Tensor, frames: Tensor) -> Tensor:
    """Attention → how well each token fits each frame.

    Args:
        weights: (B, heads, L, F) float32.
        tokens: (B,) tokens of each row; what follows them is padding.
        frames: (B,) frames that hold the row's audio.

    Returns:
        (B, L, F): weights in standard deviations from each frame's mean over the row's tokens, medians over
        7 frames, averaged over heads. What lies beyond a row's tokens or frames means nothing.
    """
    tokens = tokens.to(weights.device)
    padding = (torch.arange(weights.shape[2], device=weights.device) >= tokens[:, None])[:, None, :, None]
    count = tokens[:, None, None, None]
    total = weights.new_zeros(())
    # A checkpoint without published heads has hundreds; their copies need not be in memory at once.
    for some in weights.split(_HEADS_AT_ONCE, dim=1):
        mean = some.masked_fill(padding, 0).sum(2, keepdim=True) / count
        centred = (some - mean).masked_fill_(padding, 0)
        std = (centred.square().sum(2, keepdim=True) / count).sqrt_()
        total = total + median7(centred / std.clamp_min_(_STD_FLOOR), frames).sum(1)
    return total / weights.shape[1]


def median7(x: Tensor, frames: Tensor) -> Tensor:
    """Medians of 7 neighbours along the last axis of (B, ..., F), mirrored at both ends of `frames`."""
    half, size = _MEDIAN_WIDTH // 2, x.shape[-1]
    last = (frames.to(x.device) - 1)[:, None]
    at = torch.arange(-half, size + half, device=x.device).abs().expand(len(x), -1)
    # Clamped: rows of one or two frames have too little to mirror.
    at = torch.where(at > last, 2 * last - at, at).clamp_min_(0)
    at = at.view(len(x), *[1] * (x.dim() - 2), -1).expand(*x.shape[:-1], -1)
    mirrored = x.gather(-1, at)
    values = [mirrored[..., i : i + size] for i in range(_MEDIAN_WIDTH)]
    for low, high in _MEDIAN_NETWORK:
        a, b = values[low], values[high]
        values[low], values[high] = torch.minimum(a, b), torch.maximum(a, b)
    return values[half]
