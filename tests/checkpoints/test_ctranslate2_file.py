"""The model.bin reader: what a writer puts in comes out, and nothing malformed gets past it."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch
from helpers.whisper_checkpoints import model_bin, quantise
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oasr.checkpoints.ctranslate2_file import CTranslate2File
from oasr.errors import CheckpointError

SMALL = {
    "a/weight": np.arange(12, dtype=np.float32).reshape(3, 4) - 5,
    "a/bias": np.array([0.5, -1, 2], np.float32),
    "a/num_heads": np.int16(-7),
    "decoder/embeddings/weight": np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2),
    "empty": np.zeros((0, 3), np.float32),
}


def opened(tmp_path, data: bytes) -> CTranslate2File:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    return CTranslate2File(path)


def test_floats_come_back_exactly(tmp_path) -> None:
    stored = opened(tmp_path, model_bin(SMALL))
    assert (stored.spec, stored.revision) == ("WhisperSpec", 3)
    for name in ("a/weight", "a/bias", "decoder/embeddings/weight", "empty"):
        assert torch.equal(stored.tensor(name), torch.from_numpy(SMALL[name]))
    assert stored.scalar("a/num_heads") == -7
    assert stored.scalar("a/bias") is None and stored.scalar("none") is None


def test_half_types(tmp_path) -> None:
    half = opened(tmp_path, model_bin(quantise(SMALL, "float16"))).tensor("a/weight")
    assert half.dtype == torch.float16 and torch.equal(half.float(), torch.from_numpy(SMALL["a/weight"]))
    brain = opened(tmp_path, model_bin(quantise(SMALL, "bfloat16"))).tensor("decoder/embeddings/weight")
    assert brain.dtype == torch.bfloat16
    assert torch.equal(brain, torch.from_numpy(SMALL["decoder/embeddings/weight"]).bfloat16())


@pytest.mark.parametrize(("kind", "steps"), [("int8", 127), ("int16", 1024)])
def test_integers_are_dequantised_to_half_a_step(kind: str, steps: int, tmp_path) -> None:
    conv = np.random.default_rng(0).normal(size=(4, 3, 3)).astype(np.float32)
    stored = opened(tmp_path, model_bin(quantise({"c/weight": conv}, kind)))
    assert stored.variables["c/weight"].dtype == kind
    rows = conv.reshape(4, -1) if kind == "int8" else conv.reshape(1, -1)
    half_step = np.abs(rows).max(1) / steps / 2
    error = (stored.tensor("c/weight").numpy() - conv).reshape(rows.shape)
    assert (np.abs(error).max(1) <= half_step * 1.001).all()


def test_alias_reads_the_same_variable_and_scale(tmp_path) -> None:
    stored = opened(tmp_path, model_bin(quantise(SMALL, "int8")))
    assert "decoder/projection/weight" in stored.aliases
    assert torch.equal(stored.tensor("decoder/projection/weight"), stored.tensor("decoder/embeddings/weight"))


def test_the_result_owns_its_memory(tmp_path) -> None:
    stored = opened(tmp_path, model_bin(SMALL))
    first = stored.tensor("a/weight")
    first.zero_()
    assert stored.tensor("a/weight")[0, 0] == -5


def test_every_truncation_is_an_error(tmp_path) -> None:
    data = model_bin(quantise(SMALL, "int8"))
    for size in range(len(data)):
        with pytest.raises(CheckpointError):
            opened(tmp_path, data[:size])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_never_gets_past_as_another_exception(data, tmp_path) -> None:
    raw = bytearray(model_bin(quantise(SMALL, "int8")))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        stored = opened(tmp_path, bytes(raw))
        for name, variable in stored.variables.items():
            if variable.shape:
                stored.tensor(name)
    except CheckpointError:
        pass


def test_a_huge_declared_size_allocates_nothing(tmp_path) -> None:
    name = struct.pack("<H", 2) + b"w\0"
    head = struct.pack("<I", 6) + struct.pack("<H", 12) + b"WhisperSpec\0" + struct.pack("<II", 3, 1)
    shape = struct.pack("<B4I", 4, *[2**32 - 1] * 4)
    with pytest.raises(CheckpointError, match=r"expected .* bytes, found"):
        opened(tmp_path, head + name + shape + struct.pack("<BI", 0, 2**32 - 1))
    flat = struct.pack("<BI", 1, 2**31) + struct.pack("<BI", 1, 2**31)
    with pytest.raises(CheckpointError, match=r"w at byte 40 needs 2147483648 bytes, the file has 0 left"):
        opened(tmp_path, head + name + flat)
    many = head[:-4] + struct.pack("<I", 2**32 - 1)
    with pytest.raises(CheckpointError, match=r"truncated or not a model\.bin"):
        opened(tmp_path, many)


def test_trailing_bytes_and_wrong_versions(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="3 bytes follow the last alias"):
        opened(tmp_path, model_bin(SMALL) + b"abc")
    with pytest.raises(CheckpointError, match="expected CTranslate2 binary version 6, found 5"):
        opened(tmp_path, model_bin(SMALL, version=5))
    with pytest.raises(CheckpointError, match="cannot be read"):
        opened(tmp_path, b"")


def test_missing_or_misfit_scale(tmp_path) -> None:
    stored = quantise(SMALL, "int8")
    scale = stored.pop("a/weight_scale")
    with pytest.raises(CheckpointError, match="int8 without a/weight_scale"):
        opened(tmp_path, model_bin(stored)).tensor("a/weight")
    stored["a/weight_scale"] = scale[:2]
    with pytest.raises(CheckpointError, match="expected 1 or 3 values, found 2"):
        opened(tmp_path, model_bin(stored)).tensor("a/weight")


def test_absent_variable_is_named(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="no variable 'nope'"):
        opened(tmp_path, model_bin(SMALL)).tensor("nope")
