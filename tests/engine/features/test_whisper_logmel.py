"""Whisper's front end against transformers' extractor, a double-precision DFT, and itself."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile as sf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.features.mel import slaney_filters
from oasr.features.whisper_logmel import WhisperLogMel

WINDOW = 480000


def padded(clips: list[np.ndarray], size: int = WINDOW) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.zeros(len(clips), size)
    for row, clip in zip(rows, clips, strict=True):
        row[: len(clip)] = torch.from_numpy(clip)
    return rows, torch.tensor([len(clip) for clip in clips])


def noise(samples: int, level: float, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=samples) * level).astype(np.float32)


def awkward_clips() -> dict[str, np.ndarray]:
    beep = np.sin(np.arange(16000) * 0.3).astype(np.float32)
    return {
        "one sample": np.array([0.5], np.float32),
        "ten samples": noise(10, 0.1),
        "one hop": noise(160, 0.1),
        "just past a frame": noise(201, 0.1),
        "digital silence": np.zeros(16000, np.float32),
        "very quiet": noise(16000, 3e-6),
        "loud then silent": np.concatenate([beep, np.zeros(32000, np.float32)]),
        "exactly full": noise(WINDOW, 0.05),
        "almost full": noise(WINDOW - 100, 0.05),
        "clipped": np.sign(beep),
    }


@pytest.mark.parametrize("n_mels", [80, 128])
def test_equals_transformers_on_awkward_clips(n_mels: int) -> None:
    from transformers import WhisperFeatureExtractor

    clips = awkward_clips()
    extractor = WhisperFeatureExtractor(feature_size=n_mels)
    features, frames = WhisperLogMel(n_mels)(*padded(list(clips.values())))
    assert features.shape == (len(clips), 3000, n_mels) and frames.tolist() == [3000] * len(clips)
    for row, (name, clip) in zip(features, clips.items(), strict=True):
        expected = extractor(clip, sampling_rate=16000, return_tensors="np").input_features[0].T
        assert np.abs(row.numpy() - expected).max() < 1e-4, name


def test_equals_transformers_on_speech(repo_root) -> None:
    from transformers import WhisperFeatureExtractor

    files = sorted((repo_root / "manifests" / "audio").glob("*.flac"))[:4]
    clips = [sf.read(file, dtype="float32")[0] for file in files]
    clips += [clips[0] * 1e-4, clips[1] * 1e-6]
    features, _ = WhisperLogMel(80)(*padded(clips))
    expected = WhisperFeatureExtractor()(clips, sampling_rate=16000, return_tensors="np").input_features
    assert np.abs(features.numpy() - expected.transpose(0, 2, 1)).max() < 1e-4


def plain_logmel(clip: np.ndarray, size: int, n_mels: int) -> np.ndarray:
    """The definition, frame by frame, in double precision."""
    samples = np.zeros(size)
    samples[: len(clip)] = clip
    mirrored = np.pad(samples, 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    filters = slaney_filters(n_mels, 400, 16000).double().numpy()
    frames = [mirrored[t * 160 : t * 160 + 400] * window for t in range(size // 160)]
    power = np.abs(np.fft.rfft(frames)) ** 2 @ filters
    logs = np.log10(np.maximum(power, 1e-10))
    return (np.maximum(logs, logs.max() - 8) + 4) / 4


@pytest.mark.parametrize("size", [960, 16000, 64000])
def test_short_windows_by_definition(size: int) -> None:
    clips = [noise(n, 0.1, n) for n in (1, size // 2, size - 1, size)]
    features, frames = WhisperLogMel(80)(*padded(clips, size))
    assert frames.tolist() == [size // 160] * 4
    for row, clip in zip(features, clips, strict=True):
        assert np.abs(row.numpy() - plain_logmel(clip, size, 80)).max() < 1e-4


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(0, 3200), min_size=2, max_size=5))
def test_rows_do_not_depend_on_their_batch(lengths: list[int]) -> None:
    rows, lens = padded([noise(n, 0.1, i) for i, n in enumerate(lengths)], 3200)
    front = WhisperLogMel(80)
    together, _ = front(rows, lens)
    for i in range(len(lengths)):
        alone, _ = front(rows[i : i + 1], lens[i : i + 1])
        torch.testing.assert_close(together[i], alone[0], atol=1e-6, rtol=0)


def test_what_lies_beyond_a_clip_is_silence() -> None:
    rows, lens = padded([noise(1000, 0.1), noise(3000, 0.1)], 3200)
    front = WhisperLogMel(80)
    clean, _ = front(rows, lens)
    rows[0, 1000:] = 7.0
    dirty, _ = front(rows, lens)
    assert torch.equal(clean, dirty) and (rows[0, 1000:] == 7.0).all()


def test_window_samples_is_always_the_whole_window() -> None:
    assert {WhisperLogMel().window_samples(n) for n in (0, 1, 16000, WINDOW)} == {WINDOW}


def test_bad_windows_are_refused() -> None:
    for size in (1000, 640):
        with pytest.raises(ValueError, match="multiple of 320"):
            WhisperLogMel()(torch.zeros(1, size), torch.tensor([1]))
