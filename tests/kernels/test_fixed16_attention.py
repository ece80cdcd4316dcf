"""Attention on 16-bit integers, and that of a decoder step over half floats and float32."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from oasr.cache.windows import RowWindows
from oasr.kernels import fixed16
from torch import Tensor

_spec = importlib.util.spec_from_file_location("kernel_reference", Path(__file__).with_name("reference.py"))
assert _spec is not None and _spec.loader is not None
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

pytestmark = pytest.mark.skipif(not fixed16.supports("cpu"), reason="this CPU has no AVX2")
TOLERANCE = 1e-3


def same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


@pytest.mark.parametrize("frames", [1, 2, 11, 12, 13, 16, 17, 75, 401])
@pytest.mark.parametrize("sharpness", [0.1, 1.0, 4.0])
def test_self_attention_against_double_precision(frames: int, sharpness: float) -> None:
    qkv = torch.randn(2, frames, 3 * 3 * 64)
    qkv[..., : 2 * 3 * 64] *= sharpness**0.5
    found = fixed16.self_attention(qkv, 3)
    assert reference.relative_error(found, reference.self_attention(qkv, 3)) < TOLERANCE


def test_a_flat_softmax_over_many_frames_keeps_its_sum() -> None:
    # 3000 equal probabilities exceed the bound on a row's sum and are scaled down together.
    qkv = torch.randn(1, 3000, 3 * 64)
    qkv[..., :64] = 0
    qkv[..., 128:] += 1
    found = fixed16.self_attention(qkv, 1)
    assert (
        reference.relative_error(found[:, :5], qkv[..., 128:].double().mean(1, keepdim=True).expand(1, 5, 64))
        < TOLERANCE
    )


def test_equal_scores_share_equally() -> None:
    qkv = torch.zeros(1, 4, 3 * 64)
    qkv[0, :, 128:] = torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None]
    assert torch.allclose(fixed16.self_attention(qkv, 1), torch.full((1, 4, 64), 2.5), rtol=5e-4)


def test_lengths_hide_the_padding_and_leave_the_bits_alone() -> None:
    lengths = [0, 1, 15, 33, 50]
    qkv = torch.randn(5, 50, 3 * 2 * 64)
    for b, n in enumerate(lengths):
        qkv[b, n:, 2 * 64 :] = float("nan")  # keys and values of padding are never looked at
    found = fixed16.self_attention(qkv, 2, torch.tensor(lengths))
    expected = reference.self_attention(qkv, 2, lengths)
    assert found[0].eq(0).all()
    assert reference.relative_error(found, expected) < TOLERANCE
    for b, n in enumerate(lengths[1:], 1):
        assert same(fixed16.self_attention(qkv[b : b + 1, :n], 2)[0], found[b, :n])


def test_bits_do_not_depend_on_batch_or_threads() -> None:
    qkv = torch.randn(3, 800, 3 * 64)  # few heads: they are cut among the threads
    whole = fixed16.self_attention(qkv, 1)
    for threads in (1, 2, 3, 8):
        torch.set_num_threads(threads)
        assert same(fixed16.self_attention(qkv, 1), whole)
        assert same(fixed16.self_attention(qkv[1:2], 1), whole[1:2])


@pytest.mark.parametrize("scale", [1e-20, 1e15])
def test_values_of_any_size(scale: float) -> None:
    qkv = torch.randn(1, 40, 3 * 64)
    qkv[..., 128:] *= scale
    assert (
        reference.relative_error(fixed16.self_attention(qkv, 1), reference.self_attention(qkv, 1)) < TOLERANCE
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 3e38])
@pytest.mark.parametrize("part", [0, 1, 2])
def test_frames_that_are_not_finite(bad: float, part: int) -> None:
    clean = torch.randn(2, 30, 3 * 64)
    qkv = clean.clone()
    qkv[0, 7, part * 64 + 9] = bad
    found, expected = fixed16.self_attention(qkv, 1), fixed16.self_attention(clean, 1)
    assert same(found[1], expected[1])
    if part == 0:  # a query: its own row alone
        others = torch.arange(30) != 7
        assert same(found[0, others], expected[0, others])
    if bad == 3e38:  # values may be that large; scores of such queries and keys might not fit float32
        assert part != 2 or found[0].isfinite().all()
    elif part == 0:
        assert not found[0, 7].isfinite().any()
    elif part == 1:
        assert not found[0].isfinite().any()
    else:  # a channel of the values
        assert not found[0, :, 9].isfinite().any()
        assert found[0, :, :9].isfinite().all()


def test_scores_that_float32_cannot_hold() -> None:
    qkv = torch.full((1, 5, 3 * 64), 1e25)
    assert not fixed16.self_attention(qkv, 1).isfinite().any()


def windows_of(keys: Tensor, values: Tensor, lengths: Tensor) -> RowWindows:
    return RowWindows.of(zip(keys.split(1), values.split(1), strict=True), lengths)


def attend_window(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    windows = windows_of(keys, values, lengths)
    return fixed16.attend_windows(q, (windows.keys, windows.values, windows.frames, windows.lengths))


def test_rows_of_different_windows_are_found_wherever_they_lie() -> None:
    parts = []
    for rows, frames in ((2, 9), (1, 40), (3, 5)):
        keys, values = torch.randn(2, rows, 2, frames, 64).half()
        parts.append((torch.randn(rows, 128), keys, values, torch.full((rows,), frames)))
    alone = torch.cat([attend_window(*part) for part in parts])
    windows = [windows_of(*part[1:]) for part in parts]
    joined = windows[0].join(windows[1]).join(windows[2])
    q = torch.cat([part[0] for part in parts])
    index = torch.tensor([5, 0, 2, 2, 3])
    some = joined.select(index)
    assert joined.size == 40 and some.lengths.tolist() == [5, 9, 40, 40, 5]
    del parts, windows, joined  # the rows keep their memory themselves
    found = fixed16.attend_windows(q[index], (some.keys, some.values, some.frames, some.lengths))
    assert torch.equal(found, alone[index])


@pytest.mark.parametrize("kind", ["window", "step"])
@pytest.mark.parametrize("capacity", [1, 7, 64, 301])
def test_one_query_a_row(kind: str, capacity: int) -> None:
    rows, heads = 6, 3
    keys, values = torch.randn(2, rows, heads, capacity, 64)
    q = torch.randn(rows, heads * 64)
    ends = torch.tensor([0, 1, capacity, capacity // 2, capacity, max(1, capacity - 1)])
    starts = torch.zeros(rows, dtype=torch.int64)
    if kind == "window":
        keys, values = keys.half(), values.half()

        def run(rows: slice) -> Tensor:
            return attend_window(q[rows], keys[rows], values[rows], ends[rows])
    else:
        starts[4] = capacity // 3

        def run(rows: slice) -> Tensor:
            return fixed16.step_attention(q[rows], keys[rows], values[rows], ends[rows], starts[rows])

    found = run(slice(None))
    expected = reference.step_attention(q, keys, values, starts.tolist(), ends.tolist())
    assert reference.relative_error(found, expected) < 1e-5  # float32 sums
    assert found[0].eq(0).all()
    for r in range(rows):
        assert same(run(slice(r, r + 1))[0], found[r])


def test_a_step_takes_three_dimensions() -> None:
    keys, values = torch.randn(2, 2, 1, 5, 64)
    q, ends = torch.randn(2, 1, 64), torch.tensor([5, 5])
    found = fixed16.step_attention(q, keys, values, ends)
    assert found.shape == q.shape
    assert torch.equal(found[:, 0], fixed16.step_attention(q[:, 0], keys, values, ends))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("part", ["q", "keys", "values"])
def test_a_step_that_is_not_finite_stays_alone(bad: float, part: str) -> None:
    def tensors() -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(1)
        keys, values = torch.randn(2, 3, 2, 20, 64, generator=generator).half()
        return {"q": torch.randn(3, 128, generator=generator), "keys": keys, "values": values}

    spoilt, ends = tensors(), torch.tensor([20, 20, 20])
    spoilt[part].view(3, -1)[1, 5] = bad
    found = attend_window(**spoilt, lengths=ends)
    expected = attend_window(**tensors(), lengths=ends)
    assert same(found[0], expected[0]) and same(found[2], expected[2])
    if part != "keys" or bad != bad:  # an infinite key may have a score of minus infinity, which is no fault
        assert not found[1].isfinite().all()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda qkv, n: fixed16.self_attention(qkv, 3), "shape"),
        (lambda qkv, n: fixed16.self_attention(qkv[0], 2), "three dimensions"),
        (lambda qkv, n: fixed16.self_attention(qkv, 2, n.int()), "int64"),
        (lambda qkv, n: fixed16.self_attention(qkv, 2, n + 9), "lens: expected 0 to 4, got 10"),
        (lambda qkv, n: fixed16.self_attention(qkv, 2, n - 2), "lens"),
        (lambda qkv, n: fixed16.attend_windows(qkv[:, 0, :100], (n, n, n, n)), "multiple of 64"),
        (
            lambda qkv, n: fixed16.attend_windows(qkv[:, 0, :64], (n * 0, n * 0, n, n)),
            "keys: expected the address",
        ),
        (lambda qkv, n: fixed16.attend_windows(qkv[:, 0, :64], (n * 64, n * 64, n, n + 1)), "lens"),
        (
            lambda qkv, n: fixed16.step_attention(qkv[:, 0, :64], *[qkv.view(2, 1, 24, 64)] * 2, n + 30),
            "lens",
        ),
    ],
)
def test_wrong_tensors_are_named(call, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        call(torch.randn(2, 4, 6 * 64), torch.tensor([1, 1]))
