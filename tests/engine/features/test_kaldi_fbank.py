"""The filter bank against torchaudio's, row by row, and a batch against its rows."""

import pytest
import torch
from oasr.features.cmvn import GlobalCmvn
from oasr.features.kaldi_fbank import FbankConfig, KaldiFbank
from oasr.features.windows import padded_samples
from torchaudio.compliance import kaldi


def noise(n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, generator=generator) * torch.linspace(0.02, 0.5, n)


def reference(samples: torch.Tensor, config: FbankConfig) -> torch.Tensor:
    return kaldi.fbank(
        samples[None] * config.scale,
        num_mel_bins=config.n_mels,
        frame_length=config.frame_length_ms,
        frame_shift=config.frame_shift_ms,
        dither=0.0,
        energy_floor=0.0,
        sample_frequency=config.sample_rate,
        window_type=config.window,
        low_freq=config.low_hz,
        high_freq=config.high_hz,
        snip_edges=config.snip_edges,
    )


CONFIGS = [
    FbankConfig(),
    FbankConfig(n_mels=40, window="hamming"),
    FbankConfig(sample_rate=8000, n_mels=23, scale=1.0),
    FbankConfig(frame_length_ms=20, frame_shift_ms=12.5, window="hanning", low_hz=64, high_hz=7000),
    FbankConfig(window="rectangular", high_hz=-400, snip_edges=False, scale=1.0),
    FbankConfig(sample_rate=22050, window="blackman", snip_edges=False),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.sample_rate}-{c.window}")
@pytest.mark.parametrize("n", [601, 4000, 23456])
def test_each_row_equals_torchaudio(config: FbankConfig, n: int) -> None:
    samples = noise(n)
    wanted = reference(samples, config)
    padded = torch.nn.functional.pad(samples, (0, 5000))[None]
    features, frames = KaldiFbank(config)(padded, torch.tensor([n]))
    assert frames.tolist() == [len(wanted)]
    torch.testing.assert_close(features[0, : len(wanted)], wanted, atol=1e-4, rtol=0)
    assert not features[0, len(wanted) :].any()


def test_silence_and_speech_like_levels_share_the_floor() -> None:
    samples = torch.cat([torch.zeros(3000), noise(3000), torch.zeros(3000)])
    features, frames = KaldiFbank(FbankConfig())(samples[None], torch.tensor([9000]))
    torch.testing.assert_close(features[0], reference(samples, FbankConfig()), atol=1e-4, rtol=0)
    assert features.min() == pytest.approx(-15.9424, abs=1e-3)
    assert frames.tolist() == [features.shape[1]]


@pytest.mark.parametrize("snip_edges", [True, False])
def test_a_row_does_not_depend_on_its_batch(snip_edges: bool) -> None:
    frontend = KaldiFbank(
        FbankConfig(snip_edges=snip_edges), GlobalCmvn(torch.ones(80), torch.full((80,), 0.5))
    )
    clips = [noise(n, n) for n in (8000, 399, 400, 7001, 1)]
    batch = torch.stack([torch.nn.functional.pad(clip, (0, 8000 - len(clip))) for clip in clips])
    features, frames = frontend(batch, torch.tensor([len(c) for c in clips]))
    for row, clip in enumerate(clips):
        alone, count = frontend(batch[row : row + 1], torch.tensor([len(clip)]))
        assert torch.equal(features[row], alone[0])
        assert frames[row] == count[0]
    assert frames.tolist() == ([48, 0, 1, 42, 0] if snip_edges else [50, 2, 3, 44, 0])


def test_an_empty_batch_and_an_empty_row() -> None:
    frontend = KaldiFbank(FbankConfig())
    features, frames = frontend(torch.zeros(1, 8000), torch.tensor([0]))
    assert features.shape == (1, 48, 80)
    assert frames.tolist() == [0]
    features, frames = frontend(torch.zeros(0, 8000), torch.zeros(0, dtype=torch.int64))
    assert features.shape == (0, 48, 80)


def test_corpus_statistics_normalise_each_bin() -> None:
    cmvn = GlobalCmvn.from_sums([20.0, 0.0, 30.0], [50.0, 90.0, 90.0], 10)
    torch.testing.assert_close(cmvn(torch.tensor([[3.0, 3.0, 3.0]])), torch.tensor([[1.0, 1.0, 0.0]]))
    with pytest.raises(ValueError, match="one size"):
        GlobalCmvn(torch.ones(2), torch.ones(3))


def test_padded_lengths_waste_little_and_only_grow() -> None:
    lengths = [padded_samples(n, 16000) for n in range(0, 700_000, 37)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 8000
    for n, padded in zip(range(0, 700_000, 37), lengths, strict=True):
        assert n <= padded <= max(8000, n * 9 / 8 + 8)
    assert len(set(lengths)) < 60
    assert padded_samples(padded_samples(123_456, 16000), 16000) == padded_samples(123_456, 16000)
