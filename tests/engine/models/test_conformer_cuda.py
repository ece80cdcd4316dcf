"""U2++ on a GPU: WeNet's numbers in float32, close to them in half precision, texts as on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.wenet_checkpoints import NAMES, golden, write_wenet
from oasr import Engine, EngineConfig, Utterance
from oasr.checkpoints import load_model

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda")


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """float32 means float32, as the engine sets it."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)


def batch_of(model, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    case = golden(name)
    batch = torch.zeros(len(case.frames), max(case.frames) + 9, 16)
    for row, frames in enumerate(case.frames):
        features = case.features(row)
        batch[row, :frames] = model.config.cmvn(features) if model.config.cmvn else features
    return batch.to(CUDA), torch.tensor(case.frames)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float16", 0.05), ("bfloat16", 0.4)])
@torch.inference_mode()
def test_log_probabilities(tmp_path: Path, exact: None, name: str, dtype: str, tolerance: float) -> None:
    model = load_model(str(write_wenet(tmp_path / name, name)), CUDA, dtype)
    out = model.forward_offline(*batch_of(model, name))
    for row, wanted in enumerate(golden(name).log_probs):
        got = out.log_probs[row, : len(wanted)].cpu()
        torch.testing.assert_close(got, wanted, atol=tolerance, rtol=0)


@torch.inference_mode()
def test_features_are_those_of_the_cpu(tmp_path: Path) -> None:
    folder = str(write_wenet(tmp_path / "u2pp", "u2pp"))
    lengths = torch.tensor([16000, 399, 9000])
    samples = torch.randn(3, 16000) * (torch.arange(16000) < lengths[:, None]) * 0.1
    (cpu, frames), (gpu, counted) = (
        load_model(folder, device, "float32").frontend(samples.to(device), lengths)
        for device in (torch.device("cpu"), CUDA)
    )
    assert torch.equal(frames, counted) and counted.device.type == "cpu"
    torch.testing.assert_close(gpu.cpu(), cpu, atol=1e-3, rtol=0)


@pytest.mark.parametrize("method", ["ctc_cuda", "ctc_aed_rescoring"])
def test_texts_are_those_of_the_cpu_at_any_batch_size(tmp_path: Path, method: str) -> None:
    folder = str(write_wenet(tmp_path / "u2pp", "u2pp"))
    random = np.random.RandomState(0)
    clips = [(random.standard_normal(n) * 0.1).astype(np.float32) for n in (300, 16000, 41000, 40900, 80000)]
    rows = [Utterance(f"u{i}", samples=clip, sample_rate=16000) for i, clip in enumerate(clips)]
    texts = []
    for device, size in (("cpu", 3), ("cuda", 1), ("cuda", 64)):
        config = EngineConfig(
            model=folder, device=device, dtype="float32", decode_method=method, max_batch_size=size
        )
        with Engine(config) as engine:
            texts.append([out.text for out in engine.transcribe(rows)])
    assert texts[0] == texts[1] == texts[2] and any(texts[0])
