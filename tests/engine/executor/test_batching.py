from collections import Counter

from helpers.fake_models import request
from hypothesis import given
from hypothesis import strategies as st
from oasr.executor.batching import BatchLimits, LookaheadBuffer


def window_of(request):
    return -(-len(request.samples) // 100) * 100


@given(
    lengths=st.lists(st.integers(1, 500), max_size=60),
    rows=st.integers(1, 9),
    seconds=st.one_of(st.none(), st.floats(0.05, 3)),
)
def test_batches_hold_each_request_once_within_the_limits(lengths, rows, seconds):
    buffer = LookaheadBuffer(BatchLimits(rows, seconds), window_of)
    for key, length in enumerate(lengths):
        buffer.add(request(key, length))
    seen = Counter()
    while (batch := buffer.pop()) is not None:
        keys = [r.key for r in batch.requests]
        seen.update(keys)
        assert len(keys) <= rows
        assert {window_of(r) for r in batch.requests} == {batch.window_samples}
        if seconds is not None and len(keys) > 1:
            assert len(keys) * batch.window_samples / 1000 <= seconds
    assert seen == Counter(range(len(lengths)))
    assert len(buffer) == 0


def test_the_oldest_request_is_always_in_the_next_batch():
    buffer = LookaheadBuffer(BatchLimits(3), lambda r: 1000)
    for key, length in enumerate([500, 10, 490, 20, 480, 30, 470]):
        buffer.add(request(key, length))
    first = buffer.pop()
    assert 0 in {r.key for r in first.requests}
    # Its neighbours in length, not in arrival, come along.
    assert {len(r.samples) for r in first.requests} == {500, 490, 480}


def test_a_cap_on_rows_is_respected_and_leaves_the_rest():
    buffer = LookaheadBuffer(BatchLimits(8), lambda r: 100)
    for key in range(5):
        buffer.add(request(key, 50))
    assert len(buffer.pop(2).requests) == 2
    assert len(buffer) == 3


def test_the_lookahead_window_opens_with_two_batches_and_doubles_up_to_its_limit():
    buffer = LookaheadBuffer(BatchLimits(2, lookahead_rows=10), lambda r: 100)
    sizes, key = [], 0
    for _ in range(4):
        while not buffer.full:
            buffer.add(request(key, 50))
            key += 1
        sizes.append(len(buffer))
        buffer.pop()
    assert sizes == [4, 8, 10, 10]


def test_long_windows_fill_the_lookahead_window_by_their_seconds():
    limits = BatchLimits(2, lookahead_rows=100, lookahead_seconds=6.0)
    buffer = LookaheadBuffer(limits, lambda r: 3000)
    sizes, key = [], 0
    for samples in (1000, 1000, 1000, 3000, 3000, 100):  # 1 s, 3 s and 0.1 s
        while not buffer.full:
            buffer.add(request(key, samples))
            key += 1
        sizes.append(len(buffer))
        buffer.pop()
    # Two batches at first, whatever they last; then six seconds, but never less than two batches.
    assert sizes == [4, 6, 6, 5, 4, 4]
