"""Per-row caches: writes land at each row's own index, masks show each row its own keys."""

from __future__ import annotations

import pytest
import torch
from oasr.cache.decoder_state import DecoderState, can_merge, merge
from oasr.cache.windows import DenseWindow

HEADS, DIM = 2, 3


def state_of(
    lens: list[int], starts: list[int] | None = None, capacity: int = 6, window: int = 4
) -> DecoderState:
    """Rows whose cached keys are 1 + their index, so that every mix-up shows."""
    rows = len(lens)
    keys = torch.zeros(rows, HEADS, capacity, DIM)
    for row, length in enumerate(lens):
        keys[row, :, :length] = torch.arange(1.0, length + 1)[:, None] + 100 * row
    cross = torch.arange(float(rows))[:, None, None, None].expand(rows, HEADS, window, DIM).clone()
    return DecoderState(
        keys=[keys], values=[-keys], cross=[DenseWindow(cross, -cross)], lens=torch.tensor(lens),
        starts=None if starts is None else torch.tensor(starts), cross_lens=None,
        width=max(lens), uniform=min(lens) == max(lens),
    )  # fmt: skip


def token(rows: int, value: float = 7.0) -> torch.Tensor:
    return torch.full((rows, HEADS, 1, DIM), value)


def test_uniform_rows_need_no_mask() -> None:
    state = state_of([3, 3])
    assert state.step_mask() is None and state.cross_mask() is None
    state.write(0, token(2), -token(2))
    keys, values = state.keys[0], state.values[0]
    assert (keys[:, :, 3] == 7).all() and (values[:, :, 3] == -7).all() and keys[1, 0, 2, 0] == 103
    state.advance()
    assert state.lens.tolist() == [4, 4] and state.width == 4


def test_ragged_rows_write_at_their_own_index() -> None:
    state = state_of([3, 1])
    state.write(0, token(2), token(2))
    assert state.keys[0][:, 0, :4, 0].tolist() == [[1, 2, 3, 7], [101, 7, 0, 0]]
    assert state.step_mask()[:, 0, 0].tolist() == [[True] * 4, [True, True, False, False]]


def test_left_padding_is_hidden_and_positions_are_derived() -> None:
    state = state_of([3, 3], starts=[0, 2])
    assert state.positions().tolist() == [3, 1]
    assert state.step_mask()[:, 0, 0].tolist() == [[True] * 4, [False, False, True, True]]


def test_buffers_grow_in_steps_and_keep_what_was_written() -> None:
    state = state_of([3], capacity=4)
    state.reserve(4)
    assert state.capacity == 4
    state.reserve(5)
    assert state.capacity == 64 and state.values[0].shape[2] == 64
    assert state.keys[0][0, 0, :, 0].tolist() == [1, 2, 3] + [0] * 61
    state.reserve(100)
    assert state.capacity == 128


def test_one_long_row_does_not_leave_its_size_behind() -> None:
    state = state_of([300, 2], capacity=320)
    assert merge(state, state_of([5])).capacity == 320
    rest = state.select(torch.tensor([1]))
    assert rest.capacity == 64 and rest.keys[0][:, 0, :3, 0].tolist() == [[101, 102, 0]]
    assert merge(rest, state_of([64], capacity=320)).capacity == 128


def test_select_measures_what_is_left() -> None:
    state = state_of([5, 2, 2], starts=[0, 0, 1])
    short = state.select(torch.tensor([1, 1]))
    assert short.width == 2 and short.uniform and short.starts is None
    assert short.keys[0][:, 0, :2, 0].tolist() == [[101, 102]] * 2
    assert not short.keys[0][:, :, 2:].any()
    mixed = state.select(torch.tensor([2, 0]))
    assert mixed.width == 5 and not mixed.uniform and mixed.starts.tolist() == [1, 0]
    mixed.keys[0].zero_()
    assert state.keys[0].any()
    assert state.select(torch.tensor([], dtype=torch.int64)).rows == 0


def test_merge_keeps_rows_and_pads_the_smaller() -> None:
    a, b = state_of([3, 3], capacity=4, window=4), state_of([2], starts=[1], capacity=6, window=2)
    assert can_merge(a, b)
    both = merge(a, b)
    assert both.rows == 3 and both.capacity == 64 and both.width == 3 and not both.uniform
    assert both.lens.tolist() == [3, 3, 2] and both.starts.tolist() == [0, 0, 1]
    assert both.cross_lens.tolist() == [4, 4, 2]
    assert both.cross_mask()[2, 0, 0].tolist() == [True, True, False, False]
    assert merge(a, state_of([3], capacity=4)).cross_lens is None


def test_other_shapes_do_not_merge() -> None:
    a, b = state_of([1]), state_of([1])
    b.keys, b.values = [b.keys[0].double()], [b.values[0].double()]
    assert not can_merge(a, b)
    with pytest.raises(ValueError, match="cannot be merged"):
        merge(a, b)
