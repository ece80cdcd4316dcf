"""When freed memory is given back, and that rows do not keep the memory of others."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from helpers.fake_engines import drain, make_executor
from helpers.fake_models import FakeModel, request
from oasr.cache.windows import RowWindows
from oasr.executor import memory
from oasr.executor.batching import MicroBatch
from oasr.executor.collate import Collator
from oasr.executor.memory import MemoryRelease


@pytest.fixture
def trims(monkeypatch):
    calls = []
    monkeypatch.setattr(memory, "_trim", lambda: calls.append)
    return calls


def test_memory_is_released_every_so_many_seconds_of_audio(trims):
    release = MemoryRelease()
    for _ in range(10):
        release.before_encoding(100.0)
    assert trims == [0, 0, 0], "after 300, 600 and 900 s"
    release.before_encoding(1e6)
    assert len(trims) == 4


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(memory, "_trim", lambda: None)
    MemoryRelease().before_encoding(1e9)
    monkeypatch.undo()
    memory._trim.cache_clear()
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert memory._trim() is None
    memory._trim.cache_clear()


def test_a_row_that_is_done_lets_its_window_go():
    keys, values = (torch.randn(3, 2, 5, 4).half() for _ in range(2))
    owners = zip(map(torch.clone, keys.split(1)), map(torch.clone, values.split(1)), strict=True)
    windows = RowWindows.of(owners, torch.tensor([5, 4, 5]))
    del owners
    first, last = (weakref.ref(windows.owners[row][0]) for row in (0, 2))
    kept = windows.select(torch.tensor([2]))
    assert kept.nbytes * 3 == windows.nbytes
    del windows
    gc.collect()
    assert first() is None and last() is not None
    torch.testing.assert_close(kept.whole()[0], keys[2:], rtol=0, atol=0)


def test_windows_of_several_rows_are_found_whole():
    keys, values = (torch.randn(3, 2, 5, 4).half() for _ in range(2))
    owners = zip(keys.split(1), values.split(1), strict=True)
    windows = RowWindows.of(owners, torch.tensor([5, 5, 5])).select(torch.tensor([2, 0]))
    for found, made in zip(windows.whole(), (keys, values), strict=True):
        torch.testing.assert_close(found, made[[2, 0]], rtol=0, atol=0)


def test_samples_of_a_batch_go_with_whoever_takes_them():
    collator = Collator(torch.device("cpu"))
    collated = collator.collate(MicroBatch((request(6),), 100))
    samples = collated.take()
    assert samples.shape == (1, 100) and collated.samples is None
    with pytest.raises(RuntimeError, match="once"):
        collated.take()
    collator.close()


def test_the_padded_samples_are_gone_when_the_encoder_runs():
    class Model(FakeModel):
        def encode_offline(self, features, lengths, **conditioning):
            gc.collect()
            assert padded.pop()() is None
            return super().encode_offline(features, lengths, **conditioning)

    executor, padded = make_executor(model=Model()), []
    frontend = executor.model.frontend
    original = type(frontend).__call__

    def watched(self, samples, lengths):
        padded.append(weakref.ref(samples))
        features, frames = original(self, samples, lengths)
        return features.clone(), frames

    executor.model.frontend = type("Watched", (type(frontend),), {"__call__": watched})(**vars(frontend))
    assert all(outcome.error is None for outcome in drain(executor, [request(n) for n in (6, 13, 20)]))


def test_finished_rows_are_dropped_before_new_ones_get_their_windows(monkeypatch):
    executor = make_executor(max_batch_size=2, max_decode_slots=8)
    strategy, carried = executor.strategy, []
    original = type(strategy).prefill

    def watched(self, encoder_out, requests):
        carried.extend(len(group.rows) - len(group.live) for group in self._groups)
        return original(self, encoder_out, requests)

    monkeypatch.setattr(type(strategy), "prefill", watched)
    assert len(drain(executor, [request(n) for n in range(6, 300, 5)])) == 59
    assert len(carried) > 5 and not any(carried)
