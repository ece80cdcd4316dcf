"""The encoder window that a decoder row attends to, one object a layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Window(Protocol):
    """Keys and values of B rows. Read-only: rows may be dropped, repeated, reordered and joined."""

    @property
    def size(self) -> int:
        """Frames S that a (B, 1, 1, S) mask over this window has."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory that the rows hold."""
        ...

    def select(self, index: Tensor) -> Window:
        """Rows `index` (int64, repeats allowed)."""
        ...

    def joins(self, other: Window) -> bool:
        """Whether `join` accepts `other`."""
        ...

    def join(self, other: Window) -> Window:
        """These rows, then those of `other`."""
        ...


@dataclass(frozen=True, slots=True)
class DenseWindow:
    """One (B, H, S, D) buffer each; selecting and joining copy it, and a shorter window is padded."""

    keys: Tensor
    values: Tensor

    @property
    def size(self) -> int:
        """Frames S of the buffers."""
        return self.keys.shape[2]

    @property
    def nbytes(self) -> int:
        """Bytes of both buffers."""
        return self.keys.nbytes + self.values.nbytes

    def select(self, index: Tensor) -> DenseWindow:
        """Copies of rows `index`."""
        return DenseWindow(self.keys.index_select(0, index), self.values.index_select(0, index))

    def joins(self, other: Window) -> bool:
        """Same heads, head size, dtype and device."""

        def kind(x: Tensor) -> tuple[object, ...]:
            return x.shape[1], x.shape[3], x.dtype, x.device

        return isinstance(other, DenseWindow) and kind(self.keys) == kind(other.keys)

    def join(self, other: Window) -> DenseWindow:
        """Both, padded with zeros to the longer one."""
        if not isinstance(other, DenseWindow):
            raise TypeError(f"a DenseWindow joins another, not a {type(other).__name__}")
        size = max(self.size, other.size)
        return DenseWindow(
            torch.cat([_grown(self.keys, size), _grown(other.keys, size)]),
            torch.cat([_grown(self.values, size), _grown(other.values, size)]),
        )


@dataclass(frozen=True, slots=True)
class RowWindows:
    """Each row's window where it was made, found by address: nothing is ever copied.

    Attributes:
        keys, values: (B,) int64 addresses of float16 (H, frames[b], D).
        frames: (B,) int64 frames of each row's own buffers.
        lengths: (B,) int64 frames that the row may see.
        owners: what keeps the memory of each row alive: its own (1, H, frames[b], D) keys and values.
    """

    keys: Tensor
    values: Tensor
    frames: Tensor
    lengths: Tensor
    owners: tuple[tuple[Tensor, Tensor], ...]

    @classmethod
    def of(cls, owners: Iterable[tuple[Tensor, Tensor]], lengths: Tensor) -> RowWindows:
        """Each row's contiguous float16 (1, H, S, D) keys and values, and the (B,) frames each may see.

        A row brings memory of its own: in a common buffer the last row of a batch would keep all others'.
        """
        owners = tuple(owners)
        return cls(
            torch.tensor([keys.data_ptr() for keys, _ in owners], dtype=torch.int64),
            torch.tensor([values.data_ptr() for _, values in owners], dtype=torch.int64),
            torch.tensor([keys.shape[2] for keys, _ in owners], dtype=torch.int64),
            lengths.to("cpu", torch.int64),
            owners,
        )

    def whole(self) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, D) of rows whose windows are of one length, copied when it is several."""
        if len(self.owners) == 1:
            return self.owners[0]
        return torch.cat([keys for keys, _ in self.owners]), torch.cat([values for _, values in self.owners])

    @property
    def size(self) -> int:
        """The longest row's frames."""
        return int(self.frames.max()) if len(self.frames) else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers behind the rows, each counted once."""
        return sum(k.nbytes + v.nbytes for k, v in {id(owner[0]): owner for owner in self.owners}.values())

    def select(self, index: Tensor) -> RowWindows:
        """Rows `index`; the memory of a row goes when no state holds it."""
        return RowWindows(
            self.keys[index],
            self.values[index],
            self.frames[index],
            self.lengths[index],
            tuple(self.owners[i] for i in index.tolist()),
        )

    def joins(self, other: Window) -> bool:
        """Rows of any window length go together."""
        return isinstance(other, RowWindows)

    def join(self, other: Window) -> RowWindows:
        """Both; no window moves."""
        if not isinstance(other, RowWindows):
            raise TypeError(f"RowWindows join others, not a {type(other).__name__}")
        return RowWindows(
            torch.cat([self.keys, other.keys]),
            torch.cat([self.values, other.values]),
            torch.cat([self.frames, other.frames]),
            torch.cat([self.lengths, other.lengths]),
            self.owners + other.owners,
        )


@dataclass(frozen=True, slots=True)
class WindowStack:
    """What B rows attend to in all layers, kept apart from the rows' own caches.

    Attributes:
        layers: one window a layer.
        lengths: (B,) int64 frames that each row may see, on the device.
    """

    layers: tuple[Window, ...]
    lengths: Tensor

    def mask(self) -> Tensor | None:
        """(B, 1, 1, S) visible frames; None = every row sees the whole window."""
        size = self.layers[0].size
        if bool((self.lengths >= size).all()):
            return None
        index = torch.arange(size, device=self.lengths.device)
        return (index < self.lengths[:, None])[:, None, None]

    def join(self, other: WindowStack) -> WindowStack:
        """These rows, then those of `other`."""
        layers = tuple(a.join(b) for a, b in zip(self.layers, other.layers, strict=True))
        return WindowStack(layers, torch.cat([self.lengths, other.lengths]))


def windows_join(a: Sequence[Window], b: Sequence[Window]) -> bool:
    """Whether two stacks of layers can be joined layer by layer."""
    return len(a) == len(b) and all(x.joins(y) for x, y in zip(a[:1], b[:1], strict=True))


def _grown(x: Tensor, size: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, 0, 0, size - x.shape[2])) if x.shape[2] < size else x
