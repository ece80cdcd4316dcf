"""Which device and compute type a name means, and the way out of every refusal."""

from __future__ import annotations

import pytest
import torch
from oasr.errors import OptionsError
from oasr.executor import device as devices
from oasr.executor.device import choose_device, choose_dtype

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def gpus(monkeypatch):
    """Pretend that torch sees so many GPUs."""

    def pretend(count: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return pretend


@pytest.mark.parametrize(
    ("name", "count", "meant"),
    [
        ("auto", 0, "cpu"),
        ("auto", 2, "cuda:0"),
        ("cpu", 2, "cpu"),
        ("cuda", 1, "cuda:0"),
        ("cuda:1", 2, "cuda:1"),
    ],
)
def test_devices(gpus, name, count, meant):
    gpus(count)
    assert str(choose_device(name)) == meant


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("tpu", 1, "device: expected auto, cpu, cuda or cuda:N, got 'tpu'"),
        ("", 1, "device: expected auto"),
        ("cuda", 0, "device: 'cuda' .* no usable CUDA device; use cpu or auto"),
        ("cuda:2", 2, r"device: 'cuda:2' .* 2 CUDA device\(s\)"),
    ],
)
def test_devices_that_are_not_there(gpus, name, count, words):
    gpus(count)
    with pytest.raises(OptionsError, match=words):
        choose_device(name)


def test_auto_is_the_fastest_type_that_the_device_has(monkeypatch):
    assert choose_dtype("auto", GPU) == "float16"
    monkeypatch.setattr(devices.fixed16, "supports", lambda device: True)
    assert choose_dtype("auto", CPU) == "int16"
    monkeypatch.setattr(devices.fixed16, "supports", lambda device: False)
    assert choose_dtype("auto", CPU) == devices.float_dtype()
    assert choose_dtype("bfloat16", CPU) == choose_dtype("bfloat16", GPU) == "bfloat16"


@pytest.mark.parametrize(
    ("name", "device", "words"),
    [
        ("float16", CPU, "dtype: float16 needs a GPU; on a CPU use auto, int16"),
        ("int8", GPU, "dtype: int8 runs on a CPU; on a GPU use auto, float16"),
        ("int16", GPU, "dtype: int16 runs on a CPU"),
        ("int16", CPU, "dtype: int16 needs an x86-64 processor with AVX2; use auto or float32"),
    ],
)
def test_types_that_the_device_cannot_run(monkeypatch, name, device, words):
    monkeypatch.setattr(devices.fixed16, "supports", lambda _: False)
    with pytest.raises(OptionsError, match=words):
        choose_dtype(name, device)
