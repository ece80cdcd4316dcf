"""Recordings whose headers promise what none has: little memory, an end, and words for what is wrong."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest
from helpers.audio_files import encode, pcm16, sweep, wav_bytes
from oasr.audio.decode import read_audio
from oasr.audio.ffmpeg import FfmpegStream, _Converter
from oasr.audio.sndfile import SndfileStream
from oasr.audio.streams import BLOCK_FRAMES
from oasr.errors import AudioError
from oasr.types import Utterance


def read(path: Path):
    return read_audio(Utterance("u", audio=str(path)))


@pytest.mark.parametrize("channels", [2, 8, 9, 17, 24])
def test_ffmpeg_gives_every_channel_of_many(tmp_path: Path, channels: int) -> None:
    samples = np.stack([np.full(4000, (c + 1) / 32, np.float32) for c in range(channels)], axis=1)
    path = tmp_path / "x.wav"
    path.write_bytes(wav_bytes(pcm16(samples), channels=channels))
    with path.open("rb", buffering=0) as file:
        stream = FfmpegStream(file)
        blocks = np.concatenate(list(stream.blocks(0, None)))
        stream.close()
    assert blocks.shape == (4000, channels)
    np.testing.assert_allclose(blocks, samples, atol=1e-4)


def test_more_channels_than_ffmpeg_converts(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav_bytes(bytes(127 * 40), channels=127, kind="u8"))
    with path.open("rb", buffering=0) as file:
        stream = FfmpegStream(file)
        assert list(stream.blocks(0, None)) == []
        assert "decoding stopped early" in stream.warnings[0]
        stream.close()
    assert read(path).samples.shape == (40, 127)  # libsndfile can


def test_a_block_of_many_channels_has_few_frames(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav_bytes(bytes(1024 * 2 * 900), channels=1024))
    with path.open("rb", buffering=0) as file:
        stream = SndfileStream(file)
        sizes = [block.size for block in stream.blocks(0, None)]
        stream.close()
    assert sum(sizes) == 900 * 1024 and max(sizes) <= 2 * BLOCK_FRAMES


@pytest.mark.parametrize("rate", [1, 999])
def test_a_rate_that_nothing_is_recorded_at(tmp_path: Path, rate: int) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav_bytes(bytes(2000), rate=rate))
    with pytest.raises(AudioError, match=rf"sample rate: expected at least 1000 Hz, found {rate} Hz"):
        read(path)


def stream_with_jump(tmp_path: Path, gap_s: float, total_s: float) -> FfmpegStream:
    """A stream of three frames, of which the second comes `gap_s` late, by the word of its timestamps."""
    path = encode(tmp_path / "x.mka", "matroska", "flac", sweep(0.5), 16000)
    stream = FfmpegStream(io.BytesIO(path.read_bytes()))
    frames = [stream._ahead, *stream._decoded][:2]
    for number, frame in enumerate(frames):
        frame.pts = round(number * gap_s / stream._stream.time_base)
    stream._ahead, stream._decoded, stream._origin = frames[0], iter(frames[1:]), 0
    stream.total = round(total_s * 16000)
    return stream


def test_a_long_gap_is_filled_block_by_block(tmp_path: Path) -> None:
    blocks = list(stream_with_jump(tmp_path, 50.0, 60.0).blocks(0, None))
    assert sum(map(len, blocks)) > 50 * 16000 and max(map(len, blocks)) <= 2 * BLOCK_FRAMES


def test_damage_does_not_make_days_of_silence(tmp_path: Path) -> None:
    stream = stream_with_jump(tmp_path, 500_000.0, 1_000_000.0)
    assert sum(map(len, stream.blocks(0, None))) < 16000
    assert "timestamps jump by" in stream.warnings[0]


def test_packets_lost_before_a_failed_seek_is_given_up_count_once(tmp_path: Path) -> None:
    path = encode(tmp_path / "x.mka", "matroska", "flac", sweep(12.0), 16000)
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        packets = [bytes(p) for p in container.demux(audio=0) if p.size and p.pts > 9_000]
    for packet in packets:
        at = data.index(packet)
        data[at : at + len(packet)] = bytes(len(packet))
    path.write_bytes(data)
    with path.open("rb", buffering=0) as file:
        stream = FfmpegStream(file)
        # Nothing decodes where the seek leads, so that everything is decoded once more.
        assert list(stream.blocks(11 * 16000, None)) == []
        stream.close()
    assert stream.warnings == [f"damaged: {len(packets)} packets could not be decoded"]


def test_planes_are_those_of_the_frame() -> None:
    layout = SimpleNamespace(name="17 channels", channels=tuple(range(17)))
    packed = np.arange(34, dtype=np.float32)[None]
    frame = SimpleNamespace(
        layout=layout, sample_rate=16000, format=SimpleNamespace(name="flt"), to_ndarray=lambda: packed
    )
    (planes,) = _Converter(frame)(frame)
    assert planes.shape == (17, 2) and planes[3].tolist() == [3.0, 20.0]
