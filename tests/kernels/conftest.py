"""Kernels run without gradients, on two threads unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from helpers.ctc import Emulation


@pytest.fixture(autouse=True)
def quiet_torch() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def emulated_ctc(tmp_path_factory: pytest.TempPathFactory) -> Emulation:
    """The CTC kernel's code, run on the CPU."""
    return Emulation(tmp_path_factory.mktemp("ctc"))
