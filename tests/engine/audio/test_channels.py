import numpy as np
import pytest
from helpers.audio_files import pcm16, sweep, wav_bytes
from oasr.audio.channels import parse_channel
from oasr.audio.waveform import read_waveforms
from oasr.errors import AudioError, OptionsError
from oasr.types import Utterance


def array(samples, **fields):
    return Utterance("u", samples=samples, sample_rate=16000, index=4, row={"k": 1}, **fields)


@pytest.mark.parametrize(
    ("given", "policy"), [("mix", "mix"), (" Split ", "split"), ("0", 0), (1, 1), ("12", 12)]
)
def test_policies_are_spelled_by_words_and_numbers(given, policy):
    assert parse_channel(given) == policy


@pytest.mark.parametrize("given", ["left", "", "-1", -1, 1.0, True, None, "1.0", "²", "١", "1" * 5000])
def test_other_policies_are_refused(given):
    with pytest.raises(OptionsError, match="mix, split or a channel number"):
        parse_channel(given)


def test_mix_is_the_mean():
    samples = sweep(1.0, channels=3)
    ((row, waveform),) = read_waveforms(array(samples), 16000)
    np.testing.assert_allclose(waveform.samples, samples.mean(axis=1), atol=1e-6)
    assert row.id == "u" and waveform.warnings == () and waveform.sample_rate == 16000
    assert waveform.samples.flags.c_contiguous and waveform.samples.dtype == np.float32


def test_a_number_takes_that_channel_and_the_row_overrides_the_run():
    samples = sweep(0.5, channels=2)
    for channel, fields in [(1, {}), ("mix", {"channel": 1}), ("split", {"channel": "1"})]:
        ((row, waveform),) = read_waveforms(array(samples, **fields), 16000, channel)
        np.testing.assert_array_equal(waveform.samples, samples[:, 1])
        assert row.id == "u" and row.part == 0


def test_a_channel_that_is_not_there_names_how_many_there_are(tmp_path):
    (tmp_path / "x.wav").write_bytes(wav_bytes(pcm16(sweep(0.1, channels=2)), channels=2))
    with pytest.raises(AudioError, match=r"x\.wav: channel 2 .* has 2 \(0 to 1\)"):
        read_waveforms(Utterance("u", str(tmp_path / "x.wav")), 16000, 2)
    with pytest.raises(AudioError, match="mix, split"):
        read_waveforms(array(sweep(0.1), channel="left"), 16000)


def test_split_gives_a_row_a_channel():
    samples = sweep(0.5, channels=3)
    pairs = read_waveforms(array(samples), 8000, "split")
    assert [row.id for row, _ in pairs] == ["u-ch0", "u-ch1", "u-ch2"]
    assert [(row.part, row.channel, row.index) for row, _ in pairs] == [(0, 0, 4), (1, 1, 4), (2, 2, 4)]
    assert [row.parts for row, _ in pairs] == [3, 3, 3]
    assert [row.row for row, _ in pairs] == [{"k": 1, "channel": c} for c in range(3)]
    for c, (_, waveform) in enumerate(pairs):
        ((_, alone),) = read_waveforms(array(samples), 8000, c)
        np.testing.assert_allclose(waveform.samples, alone.samples, atol=1e-6)
        assert waveform.duration_s == 0.5


def test_split_leaves_a_mono_recording_its_id():
    ((row, _),) = read_waveforms(array(sweep(0.1)), 16000, "split")
    assert (row.part, row.parts) == (0, 1)
    assert row.id == "u" and row.part == 0 and row.row == {"k": 1}


def test_a_mix_that_cancels_warns_and_takes_the_loudest_channel():
    voice = sweep(1.0, 48000)
    for quiet in (1.0, 0.999):
        samples = np.concatenate([voice * -quiet, voice], axis=1)
        utterance = Utterance("u", samples=samples, sample_rate=48000)
        ((_, waveform),) = read_waveforms(utterance, 16000)
        assert len(waveform.warnings) == 1 and "cancel" in waveform.warnings[0]
        ((_, alone),) = read_waveforms(utterance, 16000, 1 if quiet < 1 else 0)
        np.testing.assert_array_equal(waveform.samples, alone.samples)


@pytest.mark.parametrize("gains", [(0, 0), (1, 0), (0.001, 0.001), (1, 1), (1, -0.5)])
def test_a_mix_that_does_not_cancel_does_not_warn(gains):
    ((_, waveform),) = read_waveforms(array(sweep(0.5) * np.array([gains], np.float32)), 16000)
    assert waveform.warnings == ()


def test_channels_that_differ_do_not_warn():
    samples = np.random.default_rng(0).normal(0, 0.1, (16000, 2)).astype(np.float32)
    ((_, waveform),) = read_waveforms(array(samples), 16000)
    assert waveform.warnings == ()


def test_duration_is_that_of_the_recording_not_of_the_resampled_samples():
    utterance = Utterance("u", samples=np.zeros(1, np.float32), sample_rate=48000)
    ((_, waveform),) = read_waveforms(utterance, 16000)
    assert waveform.duration_s == 1 / 48000 and len(waveform.samples) == 1


def test_warnings_of_the_file_reach_the_waveform(tmp_path):
    data = pcm16(sweep(1.0))
    (tmp_path / "x.wav").write_bytes(wav_bytes(data[:16000], size=len(data)))
    ((_, waveform),) = read_waveforms(Utterance("u", str(tmp_path / "x.wav")), 16000)
    assert "truncated" in waveform.warnings[0]
