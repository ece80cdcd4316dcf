"""When freed memory is given back, and that rows do not keep the memory of others."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from oasr.cache.windows import RowWindows
from oasr.executor import memory
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
    windows = RowWindows.of(keys, values, torch.tensor([5, 4, 5]))
    first, last = (weakref.ref(windows.owners[row][0]) for row in (0, 2))
    kept = windows.select(torch.tensor([2]))
    assert kept.nbytes * 3 == windows.nbytes
    del windows
    gc.collect()
    assert first() is None and last() is not None
    torch.testing.assert_close(kept.whole()[0], keys[2:], rtol=0, atol=0)


def test_windows_of_several_rows_are_found_whole():
    keys, values = (torch.randn(3, 2, 5, 4).half() for _ in range(2))
    windows = RowWindows.of(keys, values, torch.tensor([5, 5, 5])).select(torch.tensor([2, 0]))
    for found, made in zip(windows.whole(), (keys, values), strict=True):
        torch.testing.assert_close(found, made[[2, 0]], rtol=0, atol=0)
