"""The 16-bit products: close to double precision, and the same bits for a row whatever stands beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from oasr.kernels import fixed16
from torch import Tensor, nn

_spec = importlib.util.spec_from_file_location("kernel_reference", Path(__file__).with_name("reference.py"))
assert _spec is not None and _spec.loader is not None
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

pytestmark = pytest.mark.skipif(not fixed16.supports("cpu"), reason="this CPU has no AVX2")
TOLERANCE = 1e-3  # relative root mean square


def layer(k: int, n: int, bias: bool = True) -> tuple[nn.Linear, fixed16.PackedLinear]:
    linear = nn.Linear(k, n, bias)
    return linear, fixed16.PackedLinear(linear.weight, linear.bias)


def layer_norm(k: int) -> nn.LayerNorm:
    norm = nn.LayerNorm(k)
    norm.weight.normal_(1, 0.3)
    norm.bias.normal_(0, 0.3)
    return norm


def same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


@pytest.mark.parametrize(
    ("k", "n"), [(16, 16), (64, 48), (384, 1152), (1536, 384), (240, 100), (80, 51), (35, 17)]
)
@pytest.mark.parametrize("m", [1, 6, 13, 64, 65, 100])
def test_linear_against_double_precision(k: int, n: int, m: int) -> None:
    linear, packed = layer(k, n, bias=n != 48)
    norm, x = layer_norm(k), torch.randn(m, k)
    assert reference.relative_error(packed(x), reference.linear(x, linear)) < TOLERANCE
    with_all = reference.linear(x, linear, norm, gelu=True)
    assert reference.relative_error(packed(x, norm=norm, gelu=True), with_all) < TOLERANCE
    start = torch.randn(m, n)
    total = packed(x, norm=norm, add_to=start.clone())
    assert reference.relative_error(total, start + reference.linear(x, linear, norm)) < TOLERANCE


def test_a_row_has_the_same_bits_at_every_size_and_number_of_threads() -> None:
    _, packed = layer(384, 1152)
    norm, x = layer_norm(384), torch.randn(150, 384)
    whole = packed(x, norm=norm, gelu=True)
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        for m in (*range(1, 101), 150):
            assert same(packed(x[:m], norm=norm, gelu=True), whole[:m]), (threads, m)
    assert same(packed(x[40:43], norm=norm, gelu=True), whole[40:43])


def test_leading_dimensions_strides_and_emptiness() -> None:
    linear, packed = layer(32, 20)
    x = torch.randn(3, 5, 64)[..., ::2]
    assert packed(x).shape == (3, 5, 20)
    assert reference.relative_error(packed(x), reference.linear(x, linear)) < TOLERANCE
    assert packed(torch.empty(0, 32)).shape == (0, 20)
    assert packed(torch.randn(32)).shape == (20,)


@pytest.mark.parametrize("scale", [1e-20, 1e-6, 1e6, 1e20, 1e34])
def test_rows_of_very_different_sizes(scale: float) -> None:
    linear, packed = layer(64, 32, bias=False)
    x = torch.randn(9, 64)
    x[4] *= scale
    error = [reference.relative_error(packed(x)[r], reference.linear(x, linear)[r]) for r in range(9)]
    assert max(error) < TOLERANCE


def test_weights_of_very_different_sizes() -> None:
    linear = nn.Linear(64, 16, bias=False)
    linear.weight.mul_(torch.logspace(-12, 12, 16)[:, None])
    linear.weight[3] = 0
    x = torch.randn(5, 64)
    found, expected = fixed16.PackedLinear(linear.weight)(x), reference.linear(x, linear)
    assert all(reference.relative_error(found[:, j], expected[:, j]) < TOLERANCE for j in range(16))
    assert found[:, 3].eq(0).all()


def test_the_largest_sums_do_not_overflow() -> None:
    weight = torch.ones(16, 4096)
    weight[1::2] = -1
    x = torch.ones(7, 4096)
    found = fixed16.PackedLinear(weight)(x)
    assert torch.allclose(found, (x.double() @ weight.double().T).float(), rtol=5e-3)


def test_rows_of_zeros_give_the_bias() -> None:
    linear, packed = layer(48, 16)
    assert torch.equal(packed(torch.zeros(3, 48)), linear.bias.expand(3, -1))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("m", [7, 70])
def test_a_row_that_is_not_finite_stays_alone(bad: float, m: int) -> None:
    _, packed = layer(64, 32)
    norm, clean = layer_norm(64), torch.randn(m, 64)
    x = clean.clone()
    x[3, 5] = bad
    for arguments in ({}, {"norm": norm}, {"gelu": True}):
        found, expected = packed(x, **arguments), packed(clean, **arguments)
        assert not found[3].isfinite().any()
        others = torch.arange(m) != 3
        assert same(found[others], expected[others])


def test_a_weight_that_is_not_finite_spoils_its_own_output() -> None:
    weight = torch.randn(16, 32)
    weight[2, 3], weight[4, 0] = float("nan"), float("inf")
    found = fixed16.PackedLinear(weight)(torch.randn(3, 32))
    assert found.isnan().any(0).nonzero().flatten().tolist() == [2, 4]


@pytest.mark.parametrize("m", [1, 64, 65, 100, 333])
def test_feed_forward(m: int) -> None:
    (up, packed_up), (down, packed_down) = layer(64, 256), layer(256, 64)
    norm, x = layer_norm(64), torch.randn(m, 64)
    found = x.clone()
    assert fixed16.feed_forward(found, norm, packed_up, packed_down) is found
    assert reference.relative_error(found, reference.feed_forward(x, norm, up, down)) < TOLERANCE
    alone = fixed16.feed_forward(x[m // 2 : m // 2 + 1].clone(), norm, packed_up, packed_down)
    assert same(alone[0], found[m // 2])
    steps = packed_down(packed_up(x, norm=norm, gelu=True), add_to=x.clone())
    assert same(steps, found)


@pytest.mark.parametrize("channels", [80, 20])  # 20: rows of 60 floats take the general path
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("frames", [0, 1, 2, 7, 100])
def test_convolution(channels: int, stride: int, frames: int) -> None:
    conv = nn.Conv1d(channels, 32, 3, stride, padding=1)
    x = torch.randn(2, frames, channels)
    found = fixed16.conv1d_gelu(x, fixed16.pack_conv1d(conv), stride)
    if frames == 0:
        assert found.shape == (2, 0, 32)
        return
    expected = reference.conv1d_gelu(x, conv, stride)
    assert found.shape == expected.shape
    assert reference.relative_error(found, expected) < TOLERANCE


def test_window_projection_is_the_product_rounded_to_half_floats() -> None:
    _, packed = layer(96, 2 * 3 * 64)
    hidden = torch.randn(2, 37, 96)
    keys, values = packed.window(hidden)
    plain = packed(hidden).half().view(2, 37, 2, 3, 64).permute(2, 0, 3, 1, 4)
    assert torch.equal(keys, plain[0]) and torch.equal(values, plain[1])


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda p, x: p(x.double()), "float32"),
        (lambda p, x: p(x[:, :16]), "shape"),
        (lambda p, x: p(x, norm=nn.LayerNorm(16)), "LayerNorm over 32"),
        (lambda p, x: p(x, norm=nn.LayerNorm(32, eps=1e-6)), "eps"),
        (lambda p, x: p(x, norm=nn.LayerNorm(32, bias=False)), "without"),
        (lambda p, x: p(x, gelu=True, add_to=torch.zeros(4, 16)), "both"),
        (lambda p, x: p(x, add_to=torch.zeros(16, 4).T), "contiguous"),
        (lambda p, x: p.window(x[None]), "128"),
        (lambda p, x: fixed16.feed_forward(x, nn.LayerNorm(32), p, p), "layers"),
        (lambda p, x: fixed16.conv1d_gelu(x[None], p), "x"),
        (lambda p, x: fixed16.PackedLinear(x[0]), "two dimensions"),
        (lambda p, x: fixed16.PackedLinear(x, torch.zeros(3)), "bias"),
        (lambda p, x: fixed16.pack_conv1d(nn.Conv1d(4, 4, 5)), "kernel size 3"),
    ],
)
def test_wrong_tensors_are_named(call, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        call(layer(32, 16)[1], torch.randn(4, 32))
