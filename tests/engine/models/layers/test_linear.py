"""The one linear layer, and what replaces it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from oasr.models.layers.feed_forward import FeedForward
from oasr.models.layers.int8 import Int8Linear, use_int8
from oasr.models.layers.linear import Linear, replace_linears
from torch import nn


def filled(module: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return module


def test_linear_is_nn_linear() -> None:
    ours, theirs = filled(Linear(5, 3)), nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 4, 5)
    assert torch.equal(ours(x), theirs(x))
    assert Linear(5, 3, bias=False).bias is None


def test_feed_forward_uses_the_exact_gelu() -> None:
    block, x = filled(FeedForward(4, 8)), torch.randn(3, 4)
    torch.testing.assert_close(block(x), block.down(F.gelu(block.up(x), approximate="none")))


def test_int8_rounds_each_row_on_its_own_scale() -> None:
    layer = filled(Linear(16, 4))
    layer.weight.data[1] *= 1000  # one loud row must not cost the others their precision
    layer.weight.data[2] = 0
    eight = Int8Linear(layer)
    restored = eight.weight.float() * eight.scale[:, None]
    step = layer.weight.abs().amax(1) / 127
    assert eight.weight.dtype == torch.int8
    assert ((restored - layer.weight).abs() <= step[:, None] / 2 * 1.001).all()
    x = torch.randn(6, 16)
    torch.testing.assert_close(eight(x), x @ restored.T + layer.bias, atol=1e-2, rtol=1e-5)


def test_int8_rows_do_not_depend_on_their_batch() -> None:
    eight = Int8Linear(filled(Linear(16, 4)))
    x = torch.randn(5, 16, generator=torch.Generator().manual_seed(1))
    x[0] *= 1000
    torch.testing.assert_close(eight(x)[1:], eight(x[1:]), atol=1e-5, rtol=0)


def test_replacement_spares_tied_weights() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 4)
            self.body = FeedForward(4, 8)
            self.head = Linear(4, 7, bias=False)
            self.head.weight = self.table.weight

    model = filled(Tied())
    assert use_int8(model) == 2
    assert type(model.body.up) is Int8Linear and type(model.head) is Linear
    assert model.head.weight is model.table.weight
    assert replace_linears(model, lambda layer: None) == 0
