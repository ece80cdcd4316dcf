"""The front ends of CTC snapshots against the extractors of transformers, and a batch against its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.hf_ctc_checkpoints import clip, parakeet_extractor
from oasr.features.kaldi_fbank import FbankConfig
from oasr.features.nemo_logmel import NemoConfig, NemoLogMel
from oasr.features.raw_waveform import RawWaveform
from oasr.features.stacked_fbank import StackedFbank

CLIPS = [clip(seed, n) for seed, n in enumerate((16000, 4243, 560, 23457))]
KINDS = ("raw", "plain", "stacked", "nemo", "nemo-8k")


def front_end(kind: str) -> Any:
    if kind in ("raw", "plain"):
        return RawWaveform(normalize=kind == "raw")
    if kind == "stacked":
        return StackedFbank(FbankConfig())
    if kind == "nemo":
        return NemoLogMel(NemoConfig())
    return NemoLogMel(NemoConfig(8000, n_mels=40, n_fft=256, window=200, hop=80, preemphasis=0.9))


def extractor(kind: str) -> Any:
    """That of transformers with the same settings."""
    import transformers

    if kind in ("raw", "plain"):
        normalize = kind == "raw"
        return transformers.Wav2Vec2FeatureExtractor(do_normalize=normalize, return_attention_mask=True)
    if kind == "stacked":
        return transformers.SeamlessM4TFeatureExtractor()
    if kind == "nemo":
        return parakeet_extractor()
    return parakeet_extractor(
        feature_size=40, sampling_rate=8000, hop_length=80, n_fft=256, win_length=200, preemphasis=0.9
    )


def batch_of(clips: list[np.ndarray], width: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    samples = torch.zeros(len(clips), max(width, *map(len, clips)))
    for row, one in enumerate(clips):
        samples[row, : len(one)] = torch.from_numpy(one)
    return samples, torch.tensor([len(one) for one in clips])


@pytest.mark.parametrize("kind", KINDS)
def test_features_equal_those_of_transformers(kind: str) -> None:
    ours, theirs = front_end(kind), extractor(kind)
    for samples in CLIPS:
        wanted = theirs([samples], sampling_rate=ours.sample_rate, return_tensors="pt")
        features = wanted["input_values" if kind in ("raw", "plain") else "input_features"][0]
        features = features[:, None] if features.ndim == 1 else features
        found, frames = ours(*batch_of([samples]))
        # The last frame of theirs may be masked: one behind the clip, or half a pair.
        assert int(frames[0]) == int(wanted["attention_mask"][0].sum())
        # The library's filter bank computes in double precision, which shows in the weakest bins.
        tolerance = 5e-3 if kind == "stacked" else 1e-5
        torch.testing.assert_close(found[0], features[: frames[0]], atol=tolerance, rtol=0)
        assert (found[0] - features[: frames[0]]).abs().mean() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_the_same_in_any_batch(kind: str) -> None:
    ours = front_end(kind)
    width = ours.window_samples(max(map(len, CLIPS)))
    found, frames = ours(*batch_of(CLIPS, width))
    assert found.shape[0] == len(CLIPS) and found.dtype == torch.float32
    for row, samples in enumerate(CLIPS):
        alone, count = ours(*batch_of([samples], width))
        assert count[0] == frames[row]
        assert torch.equal(found[row], alone[0])
        assert not found[row, count[0] :].any()


def test_a_batch_at_once_equals_its_rows() -> None:
    ours, samples = NemoLogMel(NemoConfig()), batch_of(CLIPS, 24000)
    (found, frames), (wanted, counts) = ours.extract(*samples), ours(*samples)
    assert torch.equal(frames, counts)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_samples", [0, 1, 160, 400, 560])
def test_short_and_silent_clips_stay_finite(kind: str, n_samples: int) -> None:
    ours = front_end(kind)
    for samples in (np.zeros(n_samples, np.float32), clip(0, n_samples)):
        found, frames = ours(*batch_of([samples], 800))
        assert torch.isfinite(found).all()
        expected = {
            "raw": n_samples,
            "plain": n_samples,
            "nemo": n_samples // 160,
            "nemo-8k": n_samples // 80,
        }
        stacked = max(0, 1 + (n_samples - 400) // 160) // 2
        assert frames.tolist() == [expected.get(kind, stacked)]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_computes_the_same(kind: str) -> None:
    ours = front_end(kind)
    samples, lengths = batch_of(CLIPS, ours.window_samples(24000))
    wanted, frames = ours(samples, lengths)
    found, counts = ours(samples.cuda(), lengths)
    assert torch.equal(counts, frames) and found.is_cuda
    torch.testing.assert_close(found.cpu(), wanted, atol=2e-3, rtol=0)
