"""Recordings that are cut while they are read: the same windows as of the whole, and nothing held."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from helpers.audio_files import encode, pcm16, wav_bytes
from oasr.audio import arrays, decode, pieces, sndfile
from oasr.audio.pieces import PieceReader
from oasr.audio.streams import ReadCancelledError
from oasr.audio.vad import DETECTORS
from oasr.audio.waveform import read_waveforms
from oasr.audio.windows import Planning
from oasr.errors import AudioError, RequestError
from oasr.types import Utterance

RATE = 1000


def talk(seconds: float, rate: int = RATE, channels: int = 1, seed: int = 1) -> np.ndarray:
    """(frames, channels) noise with a pause every two seconds."""
    samples = np.random.default_rng(seed).normal(0, 0.1, (round(seconds * rate), channels))
    for begin in np.arange(1.5, seconds, 2.0):
        samples[round(begin * rate) : round((begin + 0.4) * rate)] *= 0.001
    return samples.astype(np.float32)


def array(samples: np.ndarray, rate: int = RATE, **fields) -> Utterance:
    return Utterance("u", samples=samples, sample_rate=rate, **fields)


def read(utterance, rate=RATE, vad="pauses", limit_s=5.0, **fields):
    """(pieces handed on, row → (windows, ending))."""
    count, rows = 0, {}

    def emit(parts):
        nonlocal count
        count += 1
        for row, piece in parts:
            windows, ending = rows.get(row.id, ((), None))
            assert ending is None, "a piece behind the last one"
            rows[row.id] = (windows + piece.windows, piece.ended)

    PieceReader(rate, Planning(vad, limit_s), **fields).read(utterance, emit)
    assert all(ending is not None for _, ending in rows.values())
    return count, rows


@pytest.fixture
def early(monkeypatch):
    """Long is what lasts more than 3 s, and blocks are small."""
    monkeypatch.setattr(pieces, "LONG_S", 3.0)
    for module in (arrays, sndfile):
        monkeypatch.setattr(module, "BLOCK_FRAMES", 700)


def spans(windows):
    return [(w.start, len(w.samples), w.cut) for w in windows]


def covered(windows):
    """The recording that contiguous windows are cut from."""
    return np.concatenate([w.samples for w in windows])


@pytest.mark.parametrize("channel", ["mix", 1, "split"])
def test_a_short_recording_comes_in_one_piece_with_the_samples_of_the_whole(tmp_path, channel):
    path = encode(tmp_path / "x.mp3", "mp3", "libmp3lame", talk(30, 44100, 2), 44100)
    count, rows = read(Utterance("u", str(path)), 16000, channel=channel)
    assert count == 1
    whole = read_waveforms(Utterance("u", str(path)), 16000, channel)
    assert list(rows) == [row.id for row, _ in whole]
    for (windows, ending), (_, waveform) in zip(rows.values(), whole, strict=True):
        np.testing.assert_array_equal(covered(windows), waveform.samples)
        assert ending.duration_s == waveform.duration_s and ending.speech is None


@pytest.mark.parametrize("vad", ["pauses", "energy"])
@pytest.mark.parametrize("rate", [1000, 2205])
def test_a_long_one_comes_in_many_with_the_same_windows(monkeypatch, vad, rate):
    recording = array(talk(60, rate, 2), rate, offset=2.5)
    _, whole = read(recording, vad=vad)
    monkeypatch.setattr(pieces, "LONG_S", 3.0)
    monkeypatch.setattr(arrays, "BLOCK_FRAMES", 700)
    count, rows = read(recording, vad=vad)
    windows, ending = rows["u"]
    assert count > 10 and spans(windows) == spans(whole["u"][0]) and ending == whole["u"][1]
    for a, b in zip(windows, whole["u"][0], strict=True):
        np.testing.assert_array_equal(a.samples, b.samples)
    assert ending.duration_s == pytest.approx(57.5, abs=1e-3)
    if vad == "energy":
        assert ending.speech[0][0] == pytest.approx(2.5, abs=0.1) and ending.speech[-1][1] <= 60.0


def test_channels_of_a_long_recording_come_together(early):
    samples = talk(20, channels=2)
    samples[:, 1] = talk(20, seed=2)[:, 0]
    seen = []
    PieceReader(RATE, Planning("pauses", 5.0), "split").read(array(samples), seen.append)
    assert len(seen) > 3 and all([row.id for row, _ in parts] == ["u-ch0", "u-ch1"] for parts in seen)
    for channel in (0, 1):
        windows = [w for parts in seen for w in parts[channel][1].windows]
        np.testing.assert_array_equal(covered(windows), samples[:, channel])


def test_windows_leave_before_the_recording_is_read(monkeypatch, early):
    taken = 0
    original = arrays.ArrayStream.blocks

    def counted(self, first, last):
        nonlocal taken
        for block in original(self, first, last):
            taken += len(block)
            yield block

    monkeypatch.setattr(arrays.ArrayStream, "blocks", counted)
    first = []

    def emit(parts):
        if parts[0][1].windows and not first:
            first.append(taken)

    PieceReader(RATE, Planning("pauses", 5.0)).read(array(talk(100)), emit)
    assert first[0] < 15 * RATE


def test_a_mix_that_cancels_is_begun_anew_with_the_loudest_channel(early):
    samples = talk(20)
    count, rows = read(array(np.hstack([samples, -samples])))
    windows, ending = rows["u"]
    np.testing.assert_array_equal(covered(windows), samples[:, 0])
    assert count > 3 and "channel 0, the loudest, is used alone" in ending.warnings[0]


def test_a_mix_that_cancels_behind_silence_is_left_where_that_shows(early):
    samples = talk(20)
    samples[: 8 * RATE] = 0
    _, rows = read(array(np.hstack([-0.5 * samples, 0.5 * samples])))
    windows, ending = rows["u"]
    np.testing.assert_array_equal(covered(windows), -0.5 * samples[:, 0])
    assert "channel 0" in ending.warnings[0]


def test_infinite_samples_of_a_long_recording_are_told_when_they_come(early):
    samples = talk(60)
    samples[20 * RATE] = np.nan
    seen = []
    with pytest.raises(AudioError, match=r"NaN or infinite within the block from (19|20)\.\d s on"):
        PieceReader(RATE, Planning("pauses", 5.0)).read(array(samples), seen.append)
    assert all(piece.ended is None for parts in seen for _, piece in parts)


def test_none_stops_reading_at_the_limit_of_the_model(early):
    with pytest.raises(RequestError, match=r"a window at most 2\.5 s"):
        read(array(talk(60)), vad="none", limit_s=2.5)
    assert read(array(talk(2.5)), vad="none", limit_s=2.5)[0] == 1


def test_a_reader_gives_up_when_it_is_told(early):
    cancel = threading.Event()

    def emit(parts):
        cancel.set()

    with pytest.raises(ReadCancelledError):
        PieceReader(RATE, Planning("pauses", 5.0), cancel=cancel).read(array(talk(60)), emit)


class Fake:
    """An AudioStream of `samples` that ends after `until` frames."""

    def __init__(self, samples, rate, until):
        self.sample_rate, self.channels, self.total = rate, samples.shape[1], len(samples)
        self.warnings, self._samples, self._until = [], samples, until

    def blocks(self, first, last):
        for at in range(first, self._until, 700):
            yield self._samples[at : min(at + 700, self._until)]

    def close(self):
        pass


def test_where_one_decoder_gives_up_a_long_recording_the_next_goes_on(monkeypatch, early, tmp_path):
    samples = talk(30)
    (tmp_path / "x").write_bytes(b"x")
    tried = [Fake(samples, RATE, 12345), Fake(samples, RATE, 30000)]
    monkeypatch.setattr(decode, "_DECODERS", tuple(lambda _, one=one: one for one in tried))
    _, rows = read(Utterance("u", str(tmp_path / "x")))
    windows, ending = rows["u"]
    np.testing.assert_array_equal(covered(windows), samples[:, 0])
    assert ending.duration_s == 30.0 and ending.warnings == ()


def test_a_decoder_that_tells_another_shape_is_not_appended(monkeypatch, early, tmp_path):
    samples = talk(30)
    (tmp_path / "x").write_bytes(b"x")
    tried = [Fake(samples, RATE, 12345), Fake(samples, 2 * RATE, 30000)]
    monkeypatch.setattr(decode, "_DECODERS", tuple(lambda _, one=one: one for one in tried))
    _, rows = read(Utterance("u", str(tmp_path / "x")))
    windows, ending = rows["u"]
    np.testing.assert_array_equal(covered(windows), samples[:12345, 0])
    assert ending.duration_s == 12.345 and "left out" in ending.warnings[-1]


@pytest.mark.parametrize("until", [(2000, 500), (2000, 0), (500, 2000), (0, 2000)])
def test_of_two_damaged_readings_the_longer_one_is_used(monkeypatch, tmp_path, until):
    samples = talk(4)
    (tmp_path / "x").write_bytes(b"x")
    tried = [Fake(samples, RATE, frames) for frames in until]
    monkeypatch.setattr(decode, "_DECODERS", tuple(lambda _, one=one: one for one in tried))
    count, rows = read(Utterance("u", str(tmp_path / "x")))
    windows, ending = rows["u"]
    assert count == 1 and ending.duration_s == 2.0
    np.testing.assert_array_equal(covered(windows), samples[:2000, 0])
    assert ending.warnings == ("truncated or damaged: 2.00 s of 4.00 s could be decoded",)


def test_the_longer_one_is_that_of_more_seconds(monkeypatch, tmp_path):
    samples = talk(8)
    (tmp_path / "x").write_bytes(b"x")
    tried = [Fake(samples[:4000], RATE, 2000), Fake(samples, 4 * RATE, 3000)]
    monkeypatch.setattr(decode, "_DECODERS", tuple(lambda _, one=one: one for one in tried))
    ((windows, ending),) = read(Utterance("u", str(tmp_path / "x")))[1].values()
    assert ending.duration_s == 2.0 and len(covered(windows)) == 2000


def test_a_truncated_file_is_used_as_far_as_it_goes(early, tmp_path):
    data = wav_bytes(pcm16(talk(30)), rate=RATE)
    (tmp_path / "x.wav").write_bytes(data[:44] + data[44 : 44 + 2 * 17000])
    _, rows = read(Utterance("u", str(tmp_path / "x.wav")))
    windows, ending = rows["u"]
    assert len(covered(windows)) == 17000 and ending.duration_s == 17.0
    assert any("truncated" in warning for warning in ending.warnings)


def test_a_recording_without_speech_has_no_windows():
    assert "energy" in DETECTORS.names()
    _, rows = read(array(np.zeros((5000, 1), np.float32)), vad="energy")
    windows, ending = rows["u"]
    assert windows == () and ending.speech == () and ending.duration_s == 5.0
