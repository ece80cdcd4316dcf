"""Per-row decoder caches: self-attention keys and values, and the encoder window they attend to.

Two vectors describe every row, as in decode families with left-padded prompts:

    lens    keys cached for the row, hence the index of its next write
    starts  first valid key of the row (its left padding); None = all rows start at 0

A token's position is always `lens - starts`; it is derived, never stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from oasr.cache.windows import DenseWindow, RowWindows, Window, WindowStack, windows_join

# Buffers come in steps of this many keys and shrink with their rows: sized for the longest transcript
# there could be, or doubled for one row that loops, they would be most of the memory of a run.
_STEP = 64


@dataclass(slots=True)
class DecoderState:
    """Caches of B rows that decode together. Steps write into it in place.

    Attributes:
        keys, values: one (B, H, capacity, D) buffer a layer, zero beyond what was written.
        cross: the encoder windows, one a layer; empty without cross-attention.
        lens: (B,) int64 on the device.
        starts: (B,) int64 on the device, or None.
        cross_lens: (B,) int64 on the device when some row uses less than S; None = all use S, or
            the windows know it themselves (`RowWindows`).
        width: the largest of `lens`, known to the host.
        uniform: every row's `lens` equals `width`.
    """

    keys: list[Tensor]
    values: list[Tensor]
    cross: list[Window]
    lens: Tensor
    starts: Tensor | None
    cross_lens: Tensor | None
    width: int
    uniform: bool = True

    @property
    def rows(self) -> int:
        """Number of rows B."""
        return self.lens.shape[0]

    @property
    def capacity(self) -> int:
        """Keys that fit before the buffers have to grow."""
        return self.keys[0].shape[2]

    def positions(self) -> Tensor:
        """(B,) position of each row's next token."""
        return self.lens if self.starts is None else self.lens - self.starts

    def reserve(self, capacity: int) -> None:
        """Grow the buffers until `capacity` keys fit."""
        if capacity <= self.capacity:
            return
        extra = _room(capacity) - self.capacity
        self.keys = [F.pad(x, (0, 0, 0, extra)) for x in self.keys]
        self.values = [F.pad(x, (0, 0, 0, extra)) for x in self.values]

    def write(self, layer: int, k: Tensor, v: Tensor) -> None:
        """Put one token's (B, H, 1, D) keys and values at each row's `lens`."""
        keys, values = self.keys[layer], self.values[layer]
        if self.uniform:
            keys[:, :, self.width] = k[:, :, 0]
            values[:, :, self.width] = v[:, :, 0]
        else:
            rows = torch.arange(self.rows, device=self.lens.device)
            keys[rows, :, self.lens] = k[:, :, 0]
            values[rows, :, self.lens] = v[:, :, 0]

    def advance(self) -> None:
        """Count the token that every layer has just written."""
        self.lens = self.lens + 1
        self.width += 1

    def step_mask(self) -> Tensor | None:
        """(B, 1, 1, width + 1) visible keys of the next step; None = every row sees all of them."""
        if self.uniform and self.starts is None:
            return None
        index = torch.arange(self.width + 1, device=self.lens.device)
        visible = index <= self.lens[:, None]
        if self.starts is not None:
            visible &= index >= self.starts[:, None]
        return visible[:, None, None]

    def cross_mask(self) -> Tensor | None:
        """(B, 1, 1, S) valid encoder frames; None = every row uses the whole window."""
        if self.cross_lens is None:
            return None
        index = torch.arange(self.cross[0].size, device=self.lens.device)
        return (index < self.cross_lens[:, None])[:, None, None]

    def windows(self, index: Tensor) -> WindowStack:
        """The encoder windows of rows `index` (int64), which stay when the rows themselves leave."""
        index = index.to(self.lens.device)
        first = self.cross[0]
        if isinstance(first, RowWindows):
            lengths = first.lengths
        elif self.cross_lens is None:
            lengths = torch.full_like(self.lens, first.size)
        else:
            lengths = self.cross_lens
        return WindowStack(tuple(window.select(index) for window in self.cross), lengths[index])

    def select(self, index: Tensor) -> DecoderState:
        """Rows `index` (int64; repeats allowed) as a new state that shares no memory with this one.

        Reads the chosen rows' `lens` back to the host. The buffers shrink to what these rows need.
        """
        index = index.to(self.lens.device)
        state = replace(
            self,
            cross=[window.select(index) for window in self.cross],
            lens=self.lens.index_select(0, index),
            starts=None if self.starts is None else self.starts.index_select(0, index),
            cross_lens=None if self.cross_lens is None else self.cross_lens.index_select(0, index),
        )
        if index.numel():
            state._measure()
        state.keys = [_pick(x, index, state.width) for x in self.keys]
        state.values = [_pick(x, index, state.width) for x in self.values]
        return state

    def _measure(self) -> None:
        """What the host knows about the rows, after some of them have left."""
        lens = self.lens.tolist()
        self.width = max(lens)
        self.uniform = min(lens) == self.width
        if self.starts is not None and not bool(self.starts.any()):
            self.starts = None
        if self.cross_lens is not None:
            full = self.cross[0].size
            self.cross_lens = None if bool((self.cross_lens == full).all()) else self.cross_lens


def can_merge(a: DecoderState, b: DecoderState) -> bool:
    """Whether the rows of both states can step together (same layers, heads, dtype and device)."""
    if len(a.keys) != len(b.keys) or not windows_join(a.cross, b.cross):
        return False

    def kind(x: Tensor) -> tuple[object, ...]:
        return x.shape[1], x.shape[3], x.dtype, x.device

    return all(kind(x) == kind(y) for x, y in zip(a.keys[:1], b.keys[:1], strict=True))


def merge(a: DecoderState, b: DecoderState) -> DecoderState:
    """Rows of `a`, then rows of `b`; each row keeps its own lens, starts and encoder window.

    Encoder windows of different size are padded to the larger one; padded frames stay hidden
    through `cross_lens`.
    """
    if not can_merge(a, b):
        raise ValueError("states of different models, dtypes or devices cannot be merged")
    width = max(a.width, b.width)

    def stack(x: Tensor, y: Tensor) -> Tensor:
        out = x.new_zeros((len(x) + len(y), x.shape[1], _room(width + 1), x.shape[3]))
        out[: len(x), :, : a.width] = x[:, :, : a.width]
        out[len(x) :, :, : b.width] = y[:, :, : b.width]
        return out

    return DecoderState(
        keys=[stack(x, y) for x, y in zip(a.keys, b.keys, strict=True)],
        values=[stack(x, y) for x, y in zip(a.values, b.values, strict=True)],
        cross=[x.join(y) for x, y in zip(a.cross, b.cross, strict=True)],
        lens=torch.cat([a.lens, b.lens]),
        starts=_join_optional(a.starts, b.starts, torch.zeros_like(a.lens), torch.zeros_like(b.lens)),
        cross_lens=_join_cross_lens(a, b),
        width=width,
        uniform=a.uniform and b.uniform and a.width == b.width,
    )


def _join_cross_lens(a: DecoderState, b: DecoderState) -> Tensor | None:
    if not a.cross or not isinstance(a.cross[0], DenseWindow):
        return None
    full_a, full_b = (torch.full_like(s.lens, s.cross[0].size) for s in (a, b))
    if a.cross[0].size == b.cross[0].size:
        return _join_optional(a.cross_lens, b.cross_lens, full_a, full_b)
    left = full_a if a.cross_lens is None else a.cross_lens
    return torch.cat([left, full_b if b.cross_lens is None else b.cross_lens])


def _join_optional(a: Tensor | None, b: Tensor | None, default_a: Tensor, default_b: Tensor) -> Tensor | None:
    if a is None and b is None:
        return None
    return torch.cat([default_a if a is None else a, default_b if b is None else b])


def _room(keys: int) -> int:
    """Keys to make room for when `keys` are wanted."""
    return -(-keys // _STEP) * _STEP


def _pick(x: Tensor, index: Tensor, used: int) -> Tensor:
    # Only what was written is copied; the rest of the capacity is zero in both buffers.
    out = x.new_zeros((index.numel(), x.shape[1], _room(used + 1), x.shape[3]))
    out[:, :, :used] = x[:, :, :used].index_select(0, index)
    return out
