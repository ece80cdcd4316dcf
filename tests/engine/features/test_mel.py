"""The filter bank against torchaudio's."""

from __future__ import annotations

import pytest
import torch
import torchaudio
from oasr.features.mel import hz_to_mel, mel_to_hz, slaney_filters


@pytest.mark.parametrize(("n_mels", "n_fft", "rate"), [(80, 400, 16000), (128, 400, 16000), (64, 512, 8000)])
def test_equals_torchaudio(n_mels: int, n_fft: int, rate: int) -> None:
    expected = torchaudio.functional.melscale_fbanks(
        n_fft // 2 + 1, 0.0, rate / 2, n_mels, rate, norm="slaney", mel_scale="slaney"
    )
    torch.testing.assert_close(slaney_filters(n_mels, n_fft, rate), expected, atol=1e-6, rtol=0)


def test_scale_is_invertible_and_known_at_its_corner() -> None:
    assert hz_to_mel(1000.0) == pytest.approx(15.0)
    hz = torch.tensor([0.0, 440.0, 999.9, 1000.0, 4000.0, 8000.0], dtype=torch.float64)
    mels = torch.tensor([hz_to_mel(float(f)) for f in hz], dtype=torch.float64)
    torch.testing.assert_close(mel_to_hz(mels), hz)
