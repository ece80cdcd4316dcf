"""Sound that a decoder would leave out without a word, and words about losses that are none."""

from __future__ import annotations

import errno
import struct
from fractions import Fraction
from io import BytesIO, FileIO
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile
from helpers.audio_files import encode, pcm16, sweep, wav_bytes
from oasr.audio.decode import read_audio
from oasr.audio.ffmpeg import FfmpegStream
from oasr.audio.probe import probe
from oasr.audio.sndfile import _is_chained_ogg
from oasr.errors import AudioError
from oasr.types import Utterance


def row(path: Path, **fields: float) -> Utterance:
    return Utterance("u", str(path), **fields)


def read(path: Path, **fields: float):
    return read_audio(row(path, **fields))


def ogg(path: Path, subtype: str, seconds: float, low: float) -> bytes:
    soundfile.write(path, sweep(seconds, low=low, high=low + 1000), 16000, format="OGG", subtype=subtype)
    return path.read_bytes()


def mux(path: Path, container: str, tracks: list[np.ndarray], start_s: int = 0) -> Path:
    """FLAC tracks of (frames,) samples at 16 kHz, the first timestamp at `start_s`."""
    with av.open(str(path), "w", format=container) as out:
        streams = [out.add_stream("flac", rate=16000) for _ in tracks]
        for stream in streams:
            stream.layout = "mono"
        for stream, samples in zip(streams, tracks, strict=True):
            whole = np.frombuffer(pcm16(samples), "<i2")[None]
            frame = av.AudioFrame.from_ndarray(whole, format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 16000, start_s * 16000, Fraction(1, 16000)
            out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    return path


# Ogg files one after the other -----------------------------------------------------------------------


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_every_link_of_a_chained_ogg_file_is_read(tmp_path: Path, subtype: str) -> None:
    first, second = ogg(tmp_path / "a", subtype, 2.0, 300), ogg(tmp_path / "b", subtype, 3.0, 1500)
    (tmp_path / "ab").write_bytes(first + second)
    audio = read(tmp_path / "ab")
    assert audio.duration_s == pytest.approx(5.0, abs=0.1)
    alone = read(tmp_path / "b")
    assert np.std(audio.samples[-audio.sample_rate :]) == pytest.approx(
        np.std(alone.samples[-alone.sample_rate :]), rel=0.1
    )


@pytest.fixture(scope="module", params=["VORBIS", "OPUS"])
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Links of 12 s and 20 s."""
    folder = tmp_path_factory.mktemp("chain")
    first = ogg(folder / "a", request.param, 12.0, 300)
    (folder / "ab").write_bytes(first + ogg(folder / "b", request.param, 20.0, 1500))
    return folder / "ab"


# In the first link, across the seam, and where the second link has timestamps that suit and that do not.
@pytest.mark.parametrize("offset", [10.5, 11.5, 14.0, 29.0])
def test_a_stretch_of_a_chained_ogg_file_is_that_part_of_the_whole(chain: Path, offset: float) -> None:
    whole, part = read(chain), read(chain, offset=offset, duration=2.0)
    rate = whole.sample_rate
    assert part.sample_rate == rate and len(part.samples) == 2 * rate and part.warnings == ()
    # The first Vorbis frame behind a skip is up to 8 ms shorter than its timestamps say.
    first, slack = round(offset * rate), rate // 100
    errors = [
        float(np.abs(part.samples - whole.samples[at : at + 2 * rate]).max())
        for at in range(first - slack, first + slack + 1)
    ]
    assert min(errors) < 0.02


def test_an_ogg_file_that_is_no_chain_stays_with_libsndfile(tmp_path: Path) -> None:
    content = ogg(tmp_path / "a", "VORBIS", 2.0, 300)
    assert probe(row(tmp_path / "a")).container == "OGG"
    assert _is_chained_ogg(BytesIO(content + content))
    for damaged in (content + b"x" + content, content[:-100], content[:30], b"OggS", b""):
        assert not _is_chained_ogg(BytesIO(damaged))
    # Sound and picture begin side by side.
    begin, rest = struct.pack("<4sBBqIIIBB", b"OggS", 0, 2, 0, 1, 0, 0, 1, 0), content
    assert not _is_chained_ogg(BytesIO(begin + rest))


# A file that cannot be read to its end ----------------------------------------------------------------


class Unreadable(FileIO):
    """A file on a drive that is lost on the way."""

    lost_from = 1 << 60

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= self.lost_from:
            raise OSError(errno.ESTALE, "Stale file handle")
        return super().read(size)


@pytest.fixture
def lossy_mp3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = encode(tmp_path / "x.mp3", "mp3", "libmp3lame", sweep(30.0), 16000)
    monkeypatch.setattr("oasr.audio.decode.open_source", lambda row, *_: Unreadable(row.audio))
    return path


def test_a_read_error_on_the_way_is_an_error(lossy_mp3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(lossy_mp3).warnings == ()
    # A stretch behind which nothing more is needed has what it asks for.
    monkeypatch.setattr(Unreadable, "lost_from", 30_000)
    assert read(lossy_mp3, duration=1.0).duration_s == 1.0
    with pytest.raises(AudioError, match=r"x\.mp3: reading broke off at \d+\.\d\d s: Stale file handle"):
        read(lossy_mp3)


def test_a_read_error_at_the_start_is_named(lossy_mp3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for lost_from in (1, 2000):
        monkeypatch.setattr(Unreadable, "lost_from", lost_from)
        with pytest.raises(AudioError, match="Stale file handle"):
            read(lossy_mp3)


# Timestamps, sizes and tracks -------------------------------------------------------------------------


def test_matroska_that_begins_late_is_whole(tmp_path: Path) -> None:
    late = mux(tmp_path / "x.mka", "matroska", [sweep(3.0)[:, 0]], start_s=5)
    audio = read(late)
    assert audio.duration_s == pytest.approx(3.0, abs=0.05) and audio.warnings == ()
    assert probe(row(late)).duration_s == pytest.approx(3.0, abs=0.3)
    # The length is still compared.
    late.write_bytes(late.read_bytes()[: late.stat().st_size // 2])
    assert any("truncated or damaged" in warning for warning in read(late).warnings)


def test_a_probe_reads_a_wav_of_size_0_as_the_run_does(tmp_path: Path) -> None:
    streamed, empty = tmp_path / "x.wav", tmp_path / "empty.wav"
    streamed.write_bytes(wav_bytes(pcm16(sweep(1.0)), size=0))
    assert probe(row(streamed)).duration_s in (None, 1.0)
    assert probe(row(streamed, duration=0.5)).duration_s == 0.5
    empty.write_bytes(wav_bytes(b""))
    with pytest.raises(AudioError, match="no samples"):
        probe(row(empty))


def test_audio_tracks_that_are_not_used_are_counted(tmp_path: Path) -> None:
    silence, speech = np.zeros(16000, np.float32), sweep(1.0)[:, 0]
    assert read(mux(tmp_path / "one.mka", "matroska", [speech])).warnings == ()
    (warning,) = read(mux(tmp_path / "two.mka", "matroska", [silence, speech])).warnings
    assert warning.startswith("2 audio tracks, only track ")
    with mux(tmp_path / "three.mka", "matroska", [silence, speech, silence]).open("rb") as file:
        stream = FfmpegStream(file)
        used = stream._stream.index + 1
        stream.close()
    assert stream.warnings == [f"3 audio tracks, only track {used} (counted from 1) is used"]


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content


def test_samples_behind_the_stated_size_of_a_wav_are_counted(tmp_path: Path) -> None:
    path, rest = tmp_path / "x.wav", pcm16(sweep(2.0)[16000:])
    path.write_bytes(wav_bytes(pcm16(sweep(2.0)[:16000])) + rest)
    audio = read(path)
    assert audio.duration_s == 1.0
    (warning,) = audio.warnings
    assert "states 32000 bytes" in warning and "32000 bytes that follow" in warning


@pytest.mark.parametrize(
    ("data", "tail"),
    [
        (bytes(32000), chunk(b"LIST", b"INFO" + bytes(2000))),
        (bytes(32000), chunk(b"id3 ", b"ID3" + bytes(2001)) + chunk(b"bext", bytes(602))),
        (bytes(32001), b"\0" + chunk(b"bext", b"\1" * 3000)),
        (bytes(32001), chunk(b"bext", b"\1" * 3000)),
        (bytes(32000), bytes(5000)),
        (bytes(32000), b"TAG" + b"\xe4" * 125),
    ],
    ids=["LIST", "id3", "padded", "not padded", "room set aside", "a tag"],
)
def test_what_may_follow_the_samples_of_a_wav(tmp_path: Path, data: bytes, tail: bytes) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav_bytes(data, kind="u8") + tail)
    assert read(path).warnings == ()


def test_a_wav_of_no_end_of_chunks(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(b"RIFF\0\0\0\0WAVE" + chunk(b"JUNK", b"") * 5000)
    with pytest.raises(AudioError, match="not a recording"):
        read(path)
