import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.audio.resample import Resampler, resample

RATES = [8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000]


def sine(hz, rate, seconds=1.0):
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hz", [100, 1000, 3400])
def test_a_sine_keeps_its_place_and_level(rate, hz):
    out = resample(sine(hz, rate), rate, 16000)
    assert out.dtype == np.float32 and len(out) == 16000
    inner = slice(1600, -1600)
    np.testing.assert_allclose(out[inner], sine(hz, 16000)[inner], atol=2e-4)


@pytest.mark.parametrize("rate", [8000, 44100, 48000])
def test_agrees_with_torchaudio(rate):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchaudio.functional")
    low = resample(np.random.default_rng(0).normal(0, 0.1, 4000).astype(np.float32), 4000, rate)
    theirs = functional.resample(torch.from_numpy(low), rate, 16000, lowpass_filter_width=64).numpy()
    ours = resample(low, rate, 16000)
    inner = slice(800, min(len(ours), len(theirs)) - 800)
    np.testing.assert_allclose(ours[inner], theirs[inner], atol=2e-3)


def test_what_lies_above_the_new_nyquist_is_gone():
    assert np.abs(resample(sine(12000, 48000), 48000, 16000)[500:-500]).max() < 1e-4


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.sampled_from(RATES), st.sampled_from([8000, 16000]))
def test_the_length_is_rounded_and_never_zero(n, rate, target):
    out = resample(np.ones(n, np.float32), rate, target)
    assert abs(len(out) - n * target / rate) <= 0.5 + 1e-6 or (len(out) == 1 and n * target < rate)
    assert np.isfinite(out).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=6), st.sampled_from(RATES), st.integers(1, 3))
def test_blocks_give_what_the_whole_gives(sizes, rate, channels):
    samples = np.random.default_rng(1).normal(0, 0.1, (sum(sizes), channels)).astype(np.float32)
    converter = Resampler(rate, 16000, channels)
    for block in np.split(samples, np.cumsum(sizes)[:-1]):
        converter.add(block)
    np.testing.assert_allclose(converter.finish(), resample(samples, rate, 16000), atol=1e-6)


def test_equal_rates_change_nothing():
    samples = sine(440, 16000)
    np.testing.assert_array_equal(resample(samples, 16000, 16000), samples)
    assert len(resample(np.zeros(0, np.float32), 8000, 16000)) == 0
