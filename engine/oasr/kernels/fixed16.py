"""CPU products and attention on 16-bit integers with exact sums (include/oasr/fixed16.h).

About twice as fast as float32 with a relative rms error of 3e-4 (k = 384) to 9e-4 (k = 2048). A row's result
has the same bits at any batch size and number of threads. A row that is not finite gives NaN, and only that
row. All tensors are float32 on the CPU unless said otherwise; a kernel uses as many threads as torch does. No
gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oasr.kernels.checks import address, check, layer_norm, per_row
from oasr.native import extension

HEAD_SIZE = 64
_STEP = 16  # outputs and inputs of a packed weight come in multiples of this
_PLAIN, _GELU, _ADD = range(3)


def supports(device: torch.device | str) -> bool:
    """Whether the kernels run on that device: a CPU with AVX2, FMA and F16C."""
    return torch.device(device).type == "cpu" and extension().fixed16.supported()


class PackedLinear:
    """A linear layer, quantised once: `y = x W^T + bias`.

    Attributes:
        n: outputs.
        k: inputs.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """Pack `weight` (n, k) and `bias` (n); sizes that are no multiple of 16 are padded inside."""
        if weight.dim() != 2 or 0 in weight.shape:
            raise ValueError(f"weight: expected two dimensions (n, k), got {tuple(weight.shape)}")
        if bias is not None and bias.shape != weight.shape[:1]:
            raise ValueError(f"bias: expected shape ({weight.shape[0]},), got {tuple(bias.shape)}")
        self.n, self.k = weight.shape
        rows, columns = -self.n % _STEP, -self.k % _STEP
        full = _padded(weight, (0, columns, 0, rows))
        self._n, self._k = full.shape
        self._packed = torch.empty(self._n * self._k, dtype=torch.int16)
        self._scales = torch.empty(self._n, dtype=torch.float32)
        self._bias = (
            None if bias is None else nn.functional.pad(bias.detach().float(), (0, rows)).contiguous()
        )
        extension().fixed16.pack(full.data_ptr(), *full.shape, *self._weight()[:2])

    @property
    def padded(self) -> bool:
        """Whether a size was no multiple of 16."""
        return (self._n, self._k) != (self.n, self.k)

    def __call__(
        self, x: Tensor, norm: nn.LayerNorm | None = None, gelu: bool = False, add_to: Tensor | None = None
    ) -> Tensor:
        """The layer of `x` (..., k), which `norm` normalises first.

        Args:
            x: the input.
            norm: a layer norm over k, with gain, bias and an epsilon of 1e-5.
            gelu: apply the exact GELU to the result.
            add_to: contiguous (..., n); the result is added to it in place and it is returned.

        Returns:
            (..., n).
        """
        check("x", x, (*x.shape[:-1], self.k))
        if gelu and add_to is not None:
            raise ValueError("gelu, add_to: expected one of them, got both")
        if self._k != self.k:
            # Normalised here: the kernel's norm would count the padding.
            x = nn.functional.pad(x if norm is None else norm(x), (0, self._k - self.k))
            norm = None
        rows = x.reshape(-1, self._k).contiguous()
        mode = _GELU if gelu else _PLAIN
        if add_to is not None:
            check("add_to", add_to, (*x.shape[:-1], self.n), contiguous=True)
            if self._n == self.n:
                self._run(rows, self._k, layer_norm(norm, self.k), add_to.view(-1, self.n), _ADD)
                return add_to
        out = torch.empty(rows.shape[0], self._n, dtype=torch.float32)
        self._run(rows, self._k, layer_norm(norm, self.k), out, mode)
        out = out[:, : self.n].reshape(*x.shape[:-1], self.n)
        return out if add_to is None else add_to.add_(out)

    def window(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a decoder's cross-attention, when the layer's outputs are keys | values.

        Args:
            hidden: (B, T, k).

        Returns:
            Keys and values, float16 (B, heads, T, 64) with heads = n / 128.
        """
        if hidden.dim() != 3:
            raise ValueError(f"hidden: expected three dimensions (B, T, k), got {tuple(hidden.shape)}")
        check("hidden", hidden, (*hidden.shape[:2], self.k))
        if self.padded or self.n % (2 * HEAD_SIZE) != 0:
            raise ValueError(f"window: expected n % 128 == 0 and k % 16 == 0, got n = {self.n}, k = {self.k}")
        hidden = hidden.contiguous()
        batch, frames, _ = hidden.shape
        heads = self.n // (2 * HEAD_SIZE)
        keys, values = (torch.empty(batch, heads, frames, HEAD_SIZE, dtype=torch.float16) for _ in range(2))
        _native().window_project(
            hidden.data_ptr(),
            batch,
            frames,
            self.k,
            heads,
            *self._weight(),
            keys.data_ptr(),
            values.data_ptr(),
        )
        return keys, values

    def _weight(self) -> tuple[int, int, int]:
        return self._packed.data_ptr(), self._scales.data_ptr(), address(self._bias)

    def _run(self, x: Tensor, stride: int, norm: tuple[int, int], out: Tensor, mode: int) -> None:
        """Rows of k that start `stride` apart in `x` → rows of `out` (m, n), sizes already padded."""
        m = out.shape[0]
        weight = self._weight()
        _native().linear(
            x.data_ptr(), stride, m, *norm, self._n, self._k, *weight, out.data_ptr(), self._n, mode
        )


def pack_conv1d(conv: nn.Conv1d) -> PackedLinear:
    """The weight of a convolution of kernel size 3 for `conv1d_gelu`."""
    if conv.kernel_size != (3,) or conv.groups != 1 or conv.dilation != (1,):
        raise ValueError(f"conv: expected kernel size 3, one group, no dilation, got {conv}")
    # (n, C, 3) → (n, 3·C): three frames one after the other, as they lie in memory.
    return PackedLinear(conv.weight.permute(0, 2, 1).reshape(conv.out_channels, -1), conv.bias)


def conv1d_gelu(x: Tensor, packed: PackedLinear, stride: int = 1) -> Tensor:
    """GELU of a convolution over frames: kernel 3, one frame of zeros on either side.

    Args:
        x: (B, T, C).
        packed: from `pack_conv1d`.
        stride: frames from one output to the next.

    Returns:
        (B, (T - 1) // stride + 1, n); no frame when T is 0.
    """
    if x.dim() != 3 or packed.k != 3 * x.shape[-1]:
        raise ValueError(f"x: expected (B, T, {packed.k / 3:g}), got {tuple(x.shape)}")
    check("x", x, tuple(x.shape))
    batch, frames, channels = x.shape
    padded = nn.functional.pad(x, (0, 0, 1, 1)).contiguous()
    if packed.padded and frames > 0:
        windows = padded.unfold(1, 3, stride)[:, : -(-frames // stride)]  # (B, T', C, 3)
        return packed(windows.transpose(2, 3).flatten(2), gelu=True)
    # Three neighbouring frames lie side by side in memory: one row of the product; the next is `stride` on.
    out = torch.empty(batch, -(-frames // stride), packed.n, dtype=torch.float32)
    for row, target in zip(padded, out, strict=True):
        packed._run(row, stride * channels, (0, 0), target, _GELU)
    return out


def feed_forward(x: Tensor, norm: nn.LayerNorm, up: PackedLinear, down: PackedLinear) -> Tensor:
    """`x += down(gelu(up(norm(x))))` in place, for a contiguous x (..., k); returns x."""
    check("x", x, (*x.shape[:-1], up.k), contiguous=True)
    if up.padded or down.padded or (up.n, up.k) != (down.k, down.n):
        raise ValueError(
            "feed_forward: expected layers (ff, d) and (d, ff) with both sizes multiples of 16, "
            f"got ({up.n}, {up.k}) and ({down.n}, {down.k})"
        )
    m = x.numel() // up.k
    _native().feed_forward(
        x.data_ptr(), m, up.k, up.n, *layer_norm(norm, up.k), *up._weight(), *down._weight()
    )
    return x


def self_attention(qkv: Tensor, heads: int, lengths: Tensor | None = None) -> Tensor:
    """Every frame attends to the frames of its row, or to the first `lengths` of them.

    Args:
        qkv: (B, T, 3 * heads * 64), queries | keys | values.
        heads: number of heads of 64.
        lengths: int64 (B); a row of length 0 gives zeros.

    Returns:
        (B, T, heads * 64).
    """
    if qkv.dim() != 3:
        raise ValueError(f"qkv: expected three dimensions (B, T, 3 * D), got {tuple(qkv.shape)}")
    batch, frames, _ = qkv.shape
    check("qkv", qkv, (batch, frames, 3 * heads * HEAD_SIZE))
    qkv = qkv.contiguous()
    if lengths is not None:
        lengths = per_row("lengths", lengths, batch)
    out = torch.empty_like(qkv[..., : heads * HEAD_SIZE], memory_format=torch.contiguous_format)
    _native().self_attention(qkv.data_ptr(), batch, frames, heads, address(lengths), out.data_ptr())
    return out


def attend_windows(q: Tensor, windows: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """One query a row over the row's own window, wherever it lies in memory.

    Args:
        q: (B, D), D = heads * 64.
        windows: int64 (B) each: addresses of the keys and of the values, float16 (heads, frames, 64)
            as `PackedLinear.window` makes them; frames of each; how many of them the row sees (0 gives
            zeros). The caller keeps that memory alive.

    Returns:
        (B, D).
    """
    rows, width = q.shape
    check("q", q, (rows, width))
    if not width or width % HEAD_SIZE:
        raise ValueError(f"q: expected a width that is a multiple of {HEAD_SIZE}, got {width}")
    keys, values, frames, lengths = (per_row("windows", x, rows) for x in windows)
    q = q.contiguous()
    out = torch.empty_like(q)
    where = (x.data_ptr() for x in (keys, values, frames, lengths))
    _native().window_attention(q.data_ptr(), *where, rows, width // HEAD_SIZE, out.data_ptr())
    return out


def step_attention(
    q: Tensor, keys: Tensor, values: Tensor, ends: Tensor, starts: Tensor | None = None
) -> Tensor:
    """One query a row over its own cache of float32, frames `starts` (0) to `ends`.

    Args:
        q: (B, D) or (B, 1, D), D = heads * 64.
        keys: (B, heads, capacity, 64).
        values: like keys.
        ends: int64 (B), the frame after the last one that a row sees.
        starts: int64 (B), the first one. A row that sees no frame gives zeros.

    Returns:
        Like q.
    """
    rows, heads, capacity = _cache(q, keys, values, torch.float32)
    ends = per_row("ends", ends, rows)
    if starts is not None:
        starts = per_row("starts", starts, rows)
    q = q.contiguous()
    out = torch.empty_like(q)
    memory = q.data_ptr(), keys.data_ptr(), values.data_ptr(), address(starts), ends.data_ptr()
    _native().step_attention(*memory, rows, heads, capacity, out.data_ptr())
    return out


def _padded(tensor: Tensor, by: tuple[int, ...]) -> Tensor:
    """A float32 copy on the CPU with zeros at the ends."""
    return nn.functional.pad(tensor.detach().to("cpu", torch.float32), by).contiguous()


def _native():  # type: ignore[no-untyped-def]  # a submodule of the extension has no importable type
    """The kernels, set to as many threads as torch uses."""
    native = extension().fixed16
    # Asked at every call, for it may have been changed since.
    threads = torch.get_num_threads()
    if native.threads() != threads:
        native.set_threads(threads)
    return native


def _cache(q: Tensor, keys: Tensor, values: Tensor, dtype: torch.dtype) -> tuple[int, int, int]:
    """Check a step's query and cache; returns (rows, heads, frames)."""
    if keys.dim() != 4:
        raise ValueError(f"keys: expected four dimensions (B, heads, T, 64), got {tuple(keys.shape)}")
    rows, heads, frames, _ = keys.shape
    for name, tensor in (("keys", keys), ("values", values)):
        check(name, tensor, (rows, heads, frames, HEAD_SIZE), dtype, contiguous=True)
    width = heads * HEAD_SIZE
    check("q", q, (rows, 1, width) if q.dim() == 3 else (rows, width))
    return rows, heads, frames
