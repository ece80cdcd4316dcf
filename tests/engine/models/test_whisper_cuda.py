"""On a GPU: the features, the encoder and the decoder surface give what they give on the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
from oasr.features.whisper_logmel import WhisperLogMel
from oasr.models.decoders.whisper import WhisperDecoder
from oasr.models.encoders.whisper import WhisperEncoder
from oasr.models.interfaces import EncoderOutput
from oasr.models.whisper_config import WhisperDims

pytestmark = pytest.mark.gpu
DIMS = WhisperDims(
    n_mels=8, vocab_size=300, width=64, encoder_layers=2, encoder_heads=4, encoder_ffn=96,
    encoder_positions=40, decoder_layers=2, decoder_heads=4, decoder_ffn=96, decoder_positions=32,
)  # fmt: skip


def filled(module: torch.nn.Module) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = 0.15 * torch.randn(parameter.shape, generator=generator)
    return module.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def models() -> tuple[WhisperEncoder, WhisperDecoder]:
    return filled(WhisperEncoder(DIMS)), filled(WhisperDecoder(DIMS))


def transcript(models, device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    """Logits of a run that pads, steps, selects and merges."""
    encoder, decoder = (copy.deepcopy(m).to(device, dtype) for m in models)
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(5, 80, 8, generator=generator).to(device)
    tokens = torch.randint(300, (5, 12), generator=generator).to(device)
    hidden, lengths = encoder(features, torch.tensor([80, 80, 80, 60, 80]))
    out = EncoderOutput(lengths, hidden)
    first, a = decoder.prefill(tokens[:3, :4], out.rows(torch.arange(3)), 12, torch.tensor([4, 2, 3]))
    second, b = decoder.prefill(tokens[3:, :3], out.rows(torch.tensor([3, 4])), 4)
    logits = [first, second]
    state = decoder.merge(a, b)
    logits += [decoder.step(tokens[:, 4 + i], state) for i in range(3)]
    state = decoder.select(state, torch.tensor([4, 4, 0]))
    logits += [decoder.step(tokens[:3, 7 + i], state) for i in range(4)]
    return [x.float().cpu() for x in [hidden, *logits]]


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 2e-3), (torch.float16, 2e-2), (torch.bfloat16, 2e-1)]
)
def test_gpu_equals_cpu(models, dtype: torch.dtype, tolerance: float) -> None:
    expected = transcript(models, "cpu", torch.float32)
    assert min(float(x.std()) for x in expected) > 0.1
    actual = transcript(models, "cuda", dtype)
    assert actual[1].dtype == torch.float32
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=tolerance, rtol=0)


def test_features_equal_the_cpus() -> None:
    rows = 0.1 * torch.randn(3, 64000, generator=torch.Generator().manual_seed(2))
    lengths = torch.tensor([64000, 30000, 1])
    front = WhisperLogMel(80)
    expected, frames = front(rows, lengths)
    actual, on_gpu = front(rows.cuda(), lengths)
    assert actual.is_cuda and torch.equal(frames, on_gpu)
    torch.testing.assert_close(actual.cpu(), expected, atol=1e-4, rtol=0)
