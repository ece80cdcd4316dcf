"""What the kernels compute, in double precision and as few lines as possible."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear(x: Tensor, layer: nn.Linear, norm: nn.LayerNorm | None = None, gelu: bool = False) -> Tensor:
    x = x.double()
    if norm is not None:
        x = F.layer_norm(x, x.shape[-1:], norm.weight.double(), norm.bias.double(), norm.eps)
    y = F.linear(x, layer.weight.double(), None if layer.bias is None else layer.bias.double())
    return F.gelu(y) if gelu else y


def feed_forward(x: Tensor, norm: nn.LayerNorm, up: nn.Linear, down: nn.Linear) -> Tensor:
    return x.double() + linear(linear(x, up, norm, gelu=True), down)


def conv1d_gelu(x: Tensor, conv: nn.Conv1d, stride: int) -> Tensor:
    """(B, T, C) → (B, T', n)."""
    y = F.conv1d(x.double().transpose(1, 2), conv.weight.double(), conv.bias.double(), stride, padding=1)
    return F.gelu(y).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries (L, D) over keys and values (S, D); zeros where S is 0."""
    if len(k) == 0:
        return torch.zeros_like(q, dtype=torch.float64)
    return (q.double() @ k.double().T * q.shape[-1] ** -0.5).softmax(-1) @ v.double()


def self_attention(qkv: Tensor, heads: int, lengths: list[int] | None = None) -> Tensor:
    """(B, T, 3·H·D) → (B, T, H·D)."""
    batch, frames, width = qkv.shape
    q, k, v = qkv.view(batch, frames, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
    ends = [frames] * batch if lengths is None else lengths
    rows = [
        torch.stack([attend(q[b, h], k[b, h, :end], v[b, h, :end]) for h in range(heads)], 1)
        for b, end in enumerate(ends)
    ]
    return torch.stack(rows).flatten(2)


def step_attention(q: Tensor, keys: Tensor, values: Tensor, starts: list[int], ends: list[int]) -> Tensor:
    """One query a row: q (B, H·D) over (B, H, S, D)."""
    batch, heads, _, size = keys.shape
    q = q.view(batch, heads, 1, size)
    rows = [
        torch.cat([attend(q[b, h], keys[b, h, s:e], values[b, h, s:e]) for h in range(heads)], -1)
        for b, (s, e) in enumerate(zip(starts, ends, strict=True))
    ]
    return torch.cat(rows)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Root mean square of the difference over that of the expected values."""
    expected = expected.double()
    return float((found.double() - expected).norm() / expected.norm().clamp_min(1e-300))


class CtcHypothesis(NamedTuple):
    score: float
    tokens: tuple[int, ...]
    frames: tuple[int, ...]


class _Prefix(NamedTuple):
    tokens: tuple[int, ...]
    frames: tuple[int, ...]
    blank: float
    nonblank: float

    @property
    def total(self) -> float:
        return float(np.logaddexp(self.blank, self.nonblank))


def ctc_prefix_beam(
    log_probs: Tensor, beam: int, blank: int = 0, skip_from: float = math.inf
) -> tuple[list[CtcHypothesis], float]:
    """(T, V) → n-best of a beam of two or more, and the closest call that decided a result.

    The closest call is the smallest distance between a prefix that stayed in the beam and one that did not,
    or of the emission frame of a prefix in the n-best from moving. Exact ties are no calls.
    """
    x, beams, margin, before = log_probs.double().numpy(), None, math.inf, -1
    for t in np.flatnonzero(x[:, blank] < skip_from):
        if beams is None:
            order = np.argsort(-np.delete(x[t], blank), kind="stable")[: beam - 1]
            ids = [int(i + (i >= blank)) for i in order]
            beams = [_Prefix((i,), (int(t),), -math.inf, x[t, i]) for i in ids if x[t, i] > -math.inf]
            beams += [_Prefix((), (), x[t, blank], -math.inf)] * int(x[t, blank] > -math.inf)
        else:
            if t != before + 1:
                beams = [p._replace(blank=p.total, nonblank=-math.inf) for p in beams]
            beams, call = _ctc_step(beams, x[t], blank, int(t), beam)
            margin = min(margin, call)
        before = t
    if beams is None:
        return [CtcHypothesis(0.0, (), ())], margin
    best = sorted(beams, key=lambda p: -p.total) or [_Prefix((), (), -math.inf, -math.inf)]
    return [CtcHypothesis(p.total, p.tokens, p.frames) for p in best], margin


def _ctc_step(
    beams: list[_Prefix], x: np.ndarray, blank: int, t: int, size: int
) -> tuple[list[_Prefix], float]:
    """One frame over every token of every prefix; `scores[k, blank]` is prefix k as it is."""
    scores = np.array([p.total for p in beams])[:, None] + x
    for k, p in enumerate(beams):
        if p.tokens:
            scores[k, p.tokens[-1]] = p.blank + x[p.tokens[-1]]
    where = {p.tokens: k for k, p in enumerate(beams)}
    stayed, calls = [], []
    for p in beams:
        end, repeated, merged, frames = p.total + x[blank], -math.inf, -math.inf, p.frames
        if p.tokens:
            repeated = p.nonblank + x[p.tokens[-1]]
            parent = where.get(p.tokens[:-1])
            if parent is not None:
                merged = scores[parent, p.tokens[-1]]
                own = np.logaddexp(end, repeated)
                calls.append(abs(merged - own) if merged > -math.inf and own > -math.inf else math.inf)
                if merged > own:
                    frames = (*beams[parent].frames, t)
        stayed.append(p._replace(blank=end, nonblank=float(np.logaddexp(repeated, merged)), frames=frames))
    for p in beams:
        if p.tokens and p.tokens[:-1] in where:
            scores[where[p.tokens[:-1]], p.tokens[-1]] = -math.inf
    scores[:, blank] = [p.total for p in stayed]
    flat = scores.ravel()
    bound = np.partition(flat, -size)[-size] if flat.size > size else -math.inf
    able = np.flatnonzero((flat >= bound) & (flat > -math.inf))
    chosen = able[np.argsort(-flat[able], kind="stable")]
    if flat.size > size and bound > -math.inf:
        lost = flat[flat < bound]
        calls.append(bound - lost.max() if lost.size else math.inf)
    after = []
    for n in chosen[:size]:
        k, token = divmod(int(n), len(x))
        p = beams[k]
        extended = _Prefix((*p.tokens, token), (*p.frames, t), -math.inf, float(flat[n]))
        after.append(stayed[k] if token == blank else extended)
    return after, min(calls, default=math.inf)


def ctc_best_path(log_probs: Tensor, blank: int = 0, skip_from: float = math.inf) -> CtcHypothesis:
    """(T, V) → the best token of every frame, repeats and blanks taken out."""
    x, tokens, frames, score, last, before = log_probs.double(), [], [], 0.0, blank, -1
    for t in range(len(x)):
        if not x[t, blank] < skip_from:
            continue
        best = int(x[t].argmax())
        if best != blank and (best != last or t != before + 1):
            tokens.append(best)
            frames.append(t)
        score, last, before = score + float(x[t, best]), best, t
    return CtcHypothesis(score, tuple(tokens), tuple(frames))
