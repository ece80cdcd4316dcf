"""The awkward and broken recordings of the speech collection decode as their manifests say."""

import json

import numpy as np
import pytest
from oasr.audio.decode import read_audio
from oasr.audio.segment import plan_windows
from oasr.audio.waveform import read_waveforms
from oasr.errors import AudioError
from oasr.types import Utterance


def rows(folder):
    for manifest in sorted(folder.glob("*.jsonl")):
        for line in manifest.read_text().splitlines():
            entry = json.loads(line)
            yield Utterance(entry["id"], str(folder / entry["audio"])), entry


def test_awkward_files_have_the_duration_and_channels_that_are_stated(shared_speech, capfd):
    checked = 0
    for utterance, entry in [*rows(shared_speech / "awkward"), *rows(shared_speech / "multi")]:
        audio = read_audio(utterance)
        assert audio.duration_s == pytest.approx(entry["duration"], abs=0.1), utterance.id
        assert audio.samples.shape[1] == entry["channels"], utterance.id
        assert audio.warnings == (), utterance.id
        ((_, waveform),) = read_waveforms(utterance, 16000)
        assert len(waveform.samples) == pytest.approx(entry["duration"] * 16000, abs=1600), utterance.id
        checked += 1
    assert checked > 30
    assert capfd.readouterr().err == ""


def test_broken_files_are_errors(shared_speech):
    checked = 0
    for utterance, _ in rows(shared_speech / "broken"):
        with pytest.raises(AudioError):
            read_audio(utterance)
        checked += 1
    assert checked


def frame_levels(samples, rate):
    """Energy of 0.2 s around every 10 ms point."""
    energy = np.concatenate([[0.0], np.cumsum(samples.astype(np.float64) ** 2)])
    points = np.arange(0, len(samples), rate // 100)
    return energy[np.minimum(points + rate // 10, len(samples))] - energy[np.maximum(points - rate // 10, 0)]


@pytest.mark.parametrize(
    "name", ["long/sonnet1.mp3", "long/libri-19-227.flac", "awkward/osr_us_000_0034_8k.wav"]
)
def test_cuts_of_long_speech_fall_into_pauses(shared_speech, name):
    ((_, waveform),) = read_waveforms(Utterance("u", str(shared_speech / name)), 16000)
    windows = plan_windows(waveform.samples, 16000, 30.0)
    assert len(windows) > 1
    levels = frame_levels(waveform.samples, 16000)
    for _, cut in windows[:-1]:
        rank = np.mean(levels < levels[cut // 160])
        assert rank < 0.2, f"{rank:.0%} of the recording is quieter than the cut at {cut / 16000:.2f} s"


def test_cuts_spare_the_sentences_between_long_gaps(shared_speech):
    (entry,) = [e for _, e in rows(shared_speech / "awkward") if e["id"] == "long_gap_flac"]
    ((_, waveform),) = read_waveforms(Utterance("u", str(shared_speech / "awkward" / entry["audio"])), 16000)
    windows = plan_windows(waveform.samples, 16000, 30.0)
    assert len(windows) == 2
    for segment in entry["segments"]:
        assert not any(segment["start"] < cut / 16000 < segment["end"] for _, cut in windows)
