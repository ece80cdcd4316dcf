import random
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from helpers.fake_engines import drain
from helpers.fake_engines import make_executor as make
from helpers.fake_models import FakeCtc, FakeModel, expected_tokens, request
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.config import EngineConfig
from oasr.decode.incremental import ArOptions
from oasr.decode.strategy import NoOptions
from oasr.executor.offline import OfflineExecutor


def texts(outcomes):
    return {o.request.key: o.hypotheses[0].tokens if o.error is None else o.error.stage for o in outcomes}


@given(
    numbers=st.lists(st.integers(1, 990), min_size=1, max_size=40, unique=True),
    batch=st.sampled_from([1, 3, 7]),
    merge=st.booleans(),
    steps=st.sampled_from([1, 2, 32]),
    slots=st.sampled_from([None, 1, 5]),
)
@settings(max_examples=40, deadline=None)
def test_every_request_comes_out_once_as_itself(numbers, batch, merge, steps, slots):
    executor = make(
        strategy_options=ArOptions(merge_groups=merge),
        max_batch_size=batch,
        decode_steps_per_tick=steps,
        max_decode_slots=slots,
    )
    outcomes = drain(executor, [request(n, 10 + n % 90) for n in numbers])
    assert len(outcomes) == len(numbers)
    assert texts(outcomes) == {n: expected_tokens(n) for n in numbers}


def test_slots_bound_the_rows_that_decode_together():
    executor = make(max_batch_size=4, max_decode_slots=6)
    drain(executor, [request(n) for n in range(6, 600, 7)])
    assert max(executor.model.decoder.widths) <= 6


def test_groups_merge_so_that_steps_carry_more_rows():
    merged, apart = make(), make(strategy_options=ArOptions(merge_groups=False))
    for executor in (merged, apart):
        drain(executor, [request(n) for n in range(6, 400, 7)])
    assert len(merged.model.decoder.widths) < len(apart.model.decoder.widths)


def test_token_budget_ends_a_row_with_length():
    outcomes = drain(make(), [request(6, max_new_tokens=2), request(13)])
    reasons = {o.request.key: (o.hypotheses[0].tokens, o.hypotheses[0].finish_reason) for o in outcomes}
    assert reasons == {6: ((6, 7), "length"), 13: (expected_tokens(13), "stop")}


def test_one_shot_family_collects_behind_the_next_forward():
    executor = make("ctc")
    outcomes = drain(executor, [request(n) for n in range(1, 13)])
    assert texts(outcomes) == {n: (n,) for n in range(1, 13)}
    assert executor.strategy.log == [
        "launch 4",
        "launch 4",
        "collect 4",
        "launch 4",
        "collect 4",
        "collect 4",
    ]


def test_one_shot_family_that_declines_is_decoded_synchronously():
    executor = make("ctc")
    executor.strategy.asynchronous = False
    assert texts(drain(executor, [request(n) for n in range(1, 9)])) == {n: (n,) for n in range(1, 9)}
    assert executor.strategy.log == ["sync", "sync"]


def test_a_batch_that_asks_for_word_timings_decodes_synchronously():
    executor = make("ctc")
    drain(executor, [request(n, word_timestamps=n == 3) for n in range(1, 9)])
    assert sorted(executor.strategy.log) == ["collect 4", "launch 4", "sync"]


@pytest.mark.parametrize("family", ["ar", "ctc"])
def test_the_guilty_row_fails_alone(family):
    model = FakeModel()
    model.poison = {20: ValueError("bad row")}
    outcomes = drain(make(family, model), [request(n) for n in range(15, 27)])
    got = texts(outcomes)
    assert got.pop(20) == "decode"
    assert got == {n: (expected_tokens(n) if family == "ar" else (n,)) for n in range(15, 27) if n != 20}
    (guilty,) = [o for o in outcomes if o.error]
    assert "bad row" in str(guilty.error)


def test_a_failure_in_a_decoder_step_costs_only_its_row():
    model = FakeModel()
    model.step_error = (20, RuntimeError("step broke"))
    got = texts(drain(make(model=model), [request(n) for n in range(13, 27)]))
    assert got.pop(20) == "decode"
    assert got == {n: expected_tokens(n) for n in range(13, 27) if n != 20}


@pytest.mark.parametrize("family", ["ar", "ctc"])
@pytest.mark.parametrize("fits", [1, 2, 3])
def test_out_of_memory_halves_the_batch_until_it_fits(family, fits):
    model = FakeModel()
    model.max_rows = fits
    executor = make(family, model, max_batch_size=8)
    outcomes = drain(executor, [request(n) for n in range(1, 17)])
    assert all(o.error is None for o in outcomes)
    assert len(texts(outcomes)) == 16
    assert executor.counters.oom_splits >= 2


def test_out_of_memory_with_one_row_is_an_error_row():
    model = FakeModel()
    model.poison = {5: torch.OutOfMemoryError("CUDA out of memory")}
    outcomes = drain(make(model=model), [request(n) for n in range(1, 9)])
    got = texts(outcomes)
    assert got[5] == "decode" and sum(v == "decode" for v in got.values()) == 1
    assert "out of memory" in next(str(o.error) for o in outcomes if o.error)


def test_order_and_batch_size_do_not_change_a_result():
    numbers = list(range(1, 60))
    reference = None
    for seed, batch in ((0, 1), (1, 7), (2, 16)):
        random.Random(seed).shuffle(numbers)
        got = texts(drain(make(max_batch_size=batch), [request(n, 10 + n) for n in numbers]))
        reference = reference or got
        assert got == reference


def test_rows_of_different_windows_never_share_a_batch():
    model = FakeModel(window=None)
    executor = make(model=model, max_batch_size=8)
    drain(executor, [request(n, 30 if n % 2 else 60) for n in range(1, 17)])
    assert executor.counters.padded_samples == executor.counters.useful_samples


def test_the_decoder_cache_budget_bounds_the_rows_in_flight():
    executor = make(max_batch_size=4, decode_kv_budget_gib=3.0)
    executor.strategy.row_bytes = lambda window: 2**30
    drain(executor, [request(n) for n in range(6, 300, 7)])
    assert max(executor.model.decoder.widths) <= 3


@pytest.mark.parametrize(("lengths", "rows"), [((50, 50), 3), ((50, 150), 1)])
def test_the_decoder_cache_budget_holds_for_the_longest_window_that_was_admitted(lengths, rows):
    executor = make(model=FakeModel(window=None), max_batch_size=4, decode_kv_budget_gib=3.0)
    executor.strategy.row_bytes = lambda window: 2**30 * window // 50
    drain(executor, [request(n, lengths[n % 2]) for n in range(6, 300, 7)])
    assert max(executor.model.decoder.widths) == rows


def test_the_decoder_cache_budget_holds_for_rows_that_are_decoded_again_in_a_longer_window():
    executor = make(model=FakeModel(window=None), max_batch_size=4, decode_kv_budget_gib=3.0)
    strategy = executor.strategy
    strategy.row_bytes = lambda window: 2**30 * window // 50
    strategy.window_samples = lambda row: 150 if row.attempt else 50
    strategy.reconsider = lambda row, _: None if row.attempt else replace(row, attempt=1)
    assert len(drain(executor, [request(n) for n in range(6, 300, 7)])) == 42
    # From the first such row on, one at a time: the three at the start have six steps, and a repetition.
    widths = executor.model.decoder.widths
    assert max(widths) == 3 and set(widths[12:]) == {1}


def test_dropping_a_list_leaves_the_executor_usable():
    executor = make()
    for n in range(6, 40):
        if executor.wants_more:
            executor.add(request(n))
    executor.step()
    executor.drop_all()
    assert not executor.has_work
    assert texts(drain(executor, [request(13)])) == {13: expected_tokens(13)}


def test_a_failed_batch_does_not_keep_its_tensors_alive_while_its_rows_are_retried():
    model = FakeModel()
    alive = []

    class Held:
        pass

    def encode(features, lengths, **conditioning):
        alive[:] = [ref for ref in alive if ref() is not None]
        held = Held()
        alive.append(weakref.ref(held))
        if len(features) > 1 or len(alive) > 1:
            raise torch.OutOfMemoryError(f"fake: {len(alive)} batches in memory")
        return FakeModel.encode_offline(model, features, lengths)

    model.encode_offline = encode
    outcomes = drain(make(model=model, max_batch_size=8), [request(n) for n in range(1, 17)])
    assert texts(outcomes) == {n: expected_tokens(n) for n in range(1, 17)}


def test_a_family_that_wants_both_gets_the_head_over_its_hidden_states():
    class Both(FakeCtc):
        consumes = "both"

        def decode_offline_async(self, encoder_out, requests):
            assert torch.equal(encoder_out.log_probs, encoder_out.hidden + 1)
            return super().decode_offline_async(encoder_out, requests)

    model = FakeModel()
    config = EngineConfig(max_batch_size=4)
    model.frame_log_probs = lambda encoder_out: encoder_out.hidden + 1
    executor = OfflineExecutor(model, Both(model, NoOptions(), config), config)
    assert texts(drain(executor, [request(n) for n in range(1, 9)])) == {n: (n,) for n in range(1, 9)}


def test_a_model_without_a_head_says_so_to_a_family_that_wants_both():
    class Both(FakeCtc):
        consumes = "both"

    model = FakeModel()
    config = EngineConfig(max_batch_size=4)
    outcomes = drain(OfflineExecutor(model, Both(model, NoOptions(), config), config), [request(1)])
    assert "no frame-wise output head" in str(outcomes[0].error)


def test_rows_that_end_at_once_survive_a_failed_prefill_exactly_once():
    model = FakeModel()
    select = model.decoder.select
    calls = []

    def fail_once(state, index):
        calls.append(len(index))
        if len(calls) == 1:
            raise torch.OutOfMemoryError("fake: no room to compact")
        return select(state, index)

    model.decoder.select = fail_once
    # Multiples of 7 have no label: they end at their first token, in the prefill itself.
    numbers = [7, 14, 21, 13, 28, 35, 42, 49]
    outcomes = drain(make(model=model), [request(n) for n in numbers])
    assert calls and sorted(o.request.key for o in outcomes) == sorted(numbers)
    assert texts(outcomes) == {n: expected_tokens(n) for n in numbers}


def test_a_row_that_cannot_be_retired_comes_out_all_the_same(monkeypatch):
    model, tries = FakeModel(), []

    def windows(state, index):
        tries.append(index)
        if len(tries) == 2:
            raise torch.OutOfMemoryError("no room for the window of a row that has ended")

    monkeypatch.setattr(model.decoder, "windows", windows, raising=False)
    executor = make(model=model)
    executor.strategy.aligner = SimpleNamespace(
        rows_at_once=16, time_words=lambda rows: [row.hypothesis for row in rows]
    )
    requests = [request(number, word_timestamps=True) for number in (8, 9, 10, 11)]
    outcomes = drain(executor, requests)
    assert sorted(out.request.id for out in outcomes) == sorted(one.id for one in requests)
    assert len(tries) > 2 and all(out.error is None for out in outcomes)


def test_rows_that_end_at_once_survive_a_failed_merge_exactly_once(monkeypatch):
    model, tries = FakeModel(), []
    merge = model.decoder.merge

    def failing(a, b):
        tries.append(a)
        if len(tries) == 1:
            raise torch.OutOfMemoryError("no room for both")
        return merge(a, b)

    monkeypatch.setattr(model.decoder, "merge", failing)
    executor = make(model=model, decode_steps_per_tick=1, max_decode_slots=8)
    numbers = (6, 13, 20, 27, 7, 14, 5, 12)  # 7 and 14 have no tokens
    outcomes = drain(executor, [request(number) for number in numbers])
    assert tries and sorted(out.request.key for out in outcomes) == sorted(numbers)
    assert texts(outcomes) == {n: expected_tokens(n) for n in numbers}


def test_nothing_of_a_dropped_list_comes_out_of_the_next():
    executor = make()
    for n in (7, 14, 13, 20):
        executor.add(request(n))
    executor._begin(executor._take())
    assert executor.strategy.has_pending()
    executor.drop_all()
    assert not executor.has_work
    assert texts(drain(executor, [request(27)])) == {27: expected_tokens(27)}
