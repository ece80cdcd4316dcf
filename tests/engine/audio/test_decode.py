import os
from itertools import pairwise

import av
import numpy as np
import pytest
import soundfile
from helpers.audio_files import encode, pcm16, silent_film, sweep, wav_bytes
from oasr.audio.decode import read_audio
from oasr.errors import AudioError
from oasr.types import Utterance


def row(path, **fields):
    return Utterance("u", str(path), **fields)


def written(path, content):
    path.write_bytes(content)
    return path


def failure(path, **fields):
    with pytest.raises(AudioError) as caught:
        read_audio(row(path, **fields))
    return str(caught.value)


# Containers and codecs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "codec", "rate", "delay"),
    [
        ("ipod", "aac", 16000, 0),
        ("mp4", "aac", 44100, 0),
        ("adts", "aac", 44100, 1024),
        ("ipod", "alac", 44100, 0),
        ("webm", "libopus", 48000, 0),
        ("ogg", "libopus", 48000, 0),
        ("mp3", "libmp3lame", 44100, 0),
        ("flac", "flac", 44100, 0),
        ("amr", "libopencore_amrnb", 8000, 40),
        ("mpegts", "aac", 48000, 1024),
        ("aiff", "pcm_s16be", 22050, 0),
        ("w64", "pcm_s16le", 22050, 0),
    ],
)
def test_a_container_is_recognised_by_content_whatever_its_name(tmp_path, container, codec, rate, delay):
    if codec not in av.codecs_available:
        pytest.skip(f"this FFmpeg has no encoder {codec}")
    source = sweep(2.0, rate, high=1500)
    path = encode(tmp_path / "recording.wav", container, codec, source, rate)
    audio = read_audio(row(path))
    assert audio.sample_rate == rate and audio.samples.shape[1] == 1
    assert audio.samples.dtype == np.float32
    assert len(audio.samples) / rate == pytest.approx(2.0, abs=0.06)
    heard = audio.samples[delay : delay + rate, 0]
    assert np.corrcoef(heard, source[: len(heard), 0])[0, 1] > 0.9, "shifted or distorted"
    assert np.std(heard) == pytest.approx(np.std(source), rel=0.15)
    assert audio.warnings == ()


@pytest.mark.parametrize("kind", ["u8", "s16", "s24", "s32", "f32", "f64", "ulaw", "alaw"])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_wav_sample_format(tmp_path, kind, channels):
    source = sweep(0.5, channels=channels)
    if kind in ("ulaw", "alaw"):
        soundfile.write(tmp_path / "x.wav", source, 8000, subtype=kind.upper())
        audio = read_audio(row(tmp_path / "x.wav"))
    else:
        bits, tag = int(kind[1:]), 3 if kind[0] == "f" else 1
        if kind == "u8":
            data = np.round(source * 127 + 128).astype("u1").tobytes()
        elif tag == 3:
            data = source.astype(f"<f{bits // 8}").tobytes()
        else:
            whole = np.round(source.astype(np.float64) * (2 ** (bits - 1) - 1)).astype("<i4")
            data = np.ascontiguousarray(whole).view("u1").reshape(-1, 4)[:, : bits // 8].tobytes()
        audio = read_audio(row(written(tmp_path / "x.wav", wav_bytes(data, channels=channels, kind=kind))))
    tolerance = {"u8": 0.01, "ulaw": 0.02, "alaw": 0.02}.get(kind, 1e-4)
    np.testing.assert_allclose(audio.samples, source, atol=tolerance)


@pytest.mark.parametrize("frames", [1, 10, 200, 400])
def test_the_shortest_clips_are_audio(tmp_path, frames):
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(sweep(1.0)[:frames])))
    assert read_audio(row(path)).samples.shape == (frames, 1)


def test_nothing_reaches_standard_error(tmp_path, capfd):
    damaged = bytearray(encode(tmp_path / "x.mp3", "mp3", "libmp3lame", sweep(4.0), 16000).read_bytes())
    damaged[6000:9000] = np.random.default_rng(1).bytes(3000)
    read_audio(row(written(tmp_path / "x.mp3", bytes(damaged))))
    read_audio(row(written(tmp_path / "x.mp3", bytes(damaged[: len(damaged) // 2]))))
    failure(written(tmp_path / "y.m4a", b"\0\0\0\x18ftypM4A " + b"\0" * 500))
    assert capfd.readouterr().err == ""


# Stretches ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_files(tmp_path_factory):
    """The same 16 s, in containers that seek and in containers that do not."""
    folder, rate = tmp_path_factory.mktemp("long"), 16000
    source = sweep(16.0, rate)
    files = {
        name: encode(folder / name, container, codec, source, rate)
        for name, container, codec in [
            ("x.m4a", "ipod", "alac"),
            ("aac.mp4", "mp4", "aac"),
            ("x.mp3", "mp3", "libmp3lame"),
            ("x.aac", "adts", "aac"),
            ("x.flac", "flac", "flac"),
            ("x.webm", "webm", "libopus"),
        ]
    }
    files["x.wav"] = written(folder / "x.wav", wav_bytes(pcm16(source)))
    return files


@pytest.mark.parametrize("name", ["x.wav", "x.flac", "x.m4a", "aac.mp4", "x.mp3", "x.aac", "x.webm"])
@pytest.mark.parametrize(
    ("offset", "duration"), [(0.0, 1.0), (0.5, 1.25), (11.3, 2.0), (13.7, None), (12.0, 0.00001)]
)
def test_a_stretch_equals_the_same_part_of_the_whole(long_files, name, offset, duration):
    whole = read_audio(row(long_files[name]))
    part = read_audio(row(long_files[name], offset=offset, duration=duration))
    first = round(offset * whole.sample_rate)
    last = None if duration is None else max(first + 1, round((offset + duration) * whole.sample_rate))
    expected = whole.samples[first:last]
    # Matroska rounds its timestamps to milliseconds.
    slack = whole.sample_rate // 1000 if name == "x.webm" else 0
    assert abs(len(part.samples) - len(expected)) <= (slack if duration is None else 0)
    assert part.start_s == offset and part.warnings == ()
    n = min(len(part.samples), len(expected), 4000)
    errors = [
        float(np.abs(part.samples[:n] - whole.samples[first + shift : first + shift + n]).max())
        for shift in range(-slack, slack + 1)
        if first + shift >= 0 and first + shift + n <= len(whole.samples)
    ]
    assert min(errors) < 0.02


def test_touching_stretches_tile_the_recording(tmp_path):
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(sweep(1.0, 11025)), rate=11025))
    cuts = [0.0, 0.1001, 0.33337, 0.70001, 1.0]
    parts = [read_audio(row(path, offset=a, duration=b - a)).samples for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), read_audio(row(path)).samples)


def test_a_stretch_longer_than_the_rest_takes_the_rest(tmp_path):
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(sweep(2.0))))
    audio = read_audio(row(path, offset=1.5, duration=3.0))
    assert len(audio.samples) == 8000
    assert len(audio.warnings) == 1 and "3 s" in audio.warnings[0] and "0.500 s" in audio.warnings[0]
    assert read_audio(row(path, offset=1.5, duration=0.55)).warnings == (), "rounding is no news"


@pytest.mark.parametrize("name", ["x.wav", "x.flac", "x.m4a", "x.mp3", "x.aac", "x.webm"])
def test_an_offset_past_the_end_names_both_numbers(long_files, name):
    message = failure(long_files[name], offset=99.5)
    assert "99.5 s" in message and "16.0" in message and name in message


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"offset": -1.0}, "offset"),
        ({"offset": float("nan")}, "offset"),
        ({"offset": float("inf")}, "offset"),
        ({"duration": -2.0}, "duration"),
        ({"duration": 0.0}, "duration"),
        ({"duration": float("nan")}, "duration"),
        ({"duration": float("inf")}, "duration"),
    ],
)
def test_impossible_stretches(tmp_path, fields, word):
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(sweep(0.1))))
    assert word in failure(path, **fields)


# Damage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFF000])
def test_sizes_of_a_streamed_wav_mean_to_the_end(tmp_path, size):
    source = sweep(1.0)
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(source), size=size))
    audio = read_audio(row(path))
    np.testing.assert_allclose(audio.samples, source, atol=1e-4)
    assert audio.warnings == ()


def test_a_truncated_wav_is_used_with_a_warning(tmp_path):
    data = pcm16(sweep(2.0))
    path = written(tmp_path / "x.wav", wav_bytes(data[:20001], size=len(data)))
    audio = read_audio(row(path))
    assert len(audio.samples) == 10000
    assert "truncated" in audio.warnings[0] and "64000" in audio.warnings[0] and "20001" in audio.warnings[0]


@pytest.mark.parametrize(
    ("container", "codec"),
    [("flac", "flac"), ("mp3", "libmp3lame"), ("ogg", "libopus"), ("matroska", "libopus"), ("adts", "aac")],
)
def test_a_damaged_middle_is_passed_over_and_times_stay(tmp_path, container, codec):
    source = sweep(8.0, 48000)
    whole = encode(tmp_path / "x", container, codec, source, 48000)
    clean = read_audio(row(whole)).samples
    data = bytearray(whole.read_bytes())
    middle = len(data) // 2
    data[middle : middle + len(data) // 20] = np.random.default_rng(0).bytes(len(data) // 20)
    audio = read_audio(row(written(tmp_path / "y", bytes(data))))
    assert audio.warnings
    assert len(audio.samples) / 48000 > 6
    tail, reference = audio.samples[-48000:, 0], clean[-48000:, 0]
    # ADTS and MP3 frames carry no timestamps; what is lost there cannot be measured.
    if container not in ("adts", "mp3"):
        assert abs(len(audio.samples) - len(clean)) <= 48
        assert np.sqrt(np.mean((tail - reference) ** 2)) < 0.1, "what follows the damage has moved"


@pytest.mark.parametrize(
    ("container", "codec"), [("flac", "flac"), ("mp3", "libmp3lame"), ("matroska", "libopus")]
)
def test_a_body_cut_off_is_used_with_a_warning(tmp_path, container, codec):
    data = encode(tmp_path / "x", container, codec, sweep(8.0, 48000), 48000).read_bytes()
    audio = read_audio(row(written(tmp_path / "y", data[: len(data) // 2])))
    assert 3 < len(audio.samples) / 48000 < 5
    assert any("truncated or damaged" in w and "of 8.0" in w for w in audio.warnings)


@pytest.mark.parametrize(
    ("container", "kept"), [("AIFF", 0.5), ("AU", 0.5), ("RF64", 0.5), ("W64", 0.5), ("OGG", 0.7)]
)
def test_other_truncated_containers_warn_too(tmp_path, container, kept):
    noise = np.random.default_rng(0).normal(0, 0.1, (160000, 1))
    soundfile.write(tmp_path / "x", noise, 16000, format=container)
    data = (tmp_path / "x").read_bytes()
    assert read_audio(row(tmp_path / "x")).warnings == ()
    audio = read_audio(row(written(tmp_path / "y", data[: int(len(data) * kept)])))
    assert 0.3 * 160000 < len(audio.samples) < 160000
    assert "truncated" in audio.warnings[0]


def test_nan_and_infinity_are_counted_and_placed(tmp_path):
    samples = sweep(1.0)
    samples[8000], samples[9000], samples[9001] = np.nan, np.inf, -np.inf
    path = written(tmp_path / "x.wav", wav_bytes(samples.astype("<f4").tobytes(), kind="f32"))
    message = failure(path)
    assert "3 samples" in message and "0.5000 s" in message
    assert "0.5000 s" in failure(path, offset=0.25, duration=0.5)
    assert read_audio(row(path, duration=0.5)).samples.shape == (8000, 1)


# What is no recording -------------------------------------------------------------------------------


def test_files_that_are_no_audio(tmp_path):
    assert "0 bytes" in failure(written(tmp_path / "a.wav", b""))
    assert "no samples" in failure(written(tmp_path / "b.wav", wav_bytes(b"")))
    assert "no samples" in failure(written(tmp_path / "c.wav", wav_bytes(b"", size=0xFFFFFFFF)))
    assert "<!DOCTYPE html>" in failure(written(tmp_path / "d.wav", b"<!DOCTYPE html>\n<html>404</html>"))
    assert "text" in failure(written(tmp_path / "e.mp3", b"this is not audio\n" * 50))
    assert "not a recording" in failure(written(tmp_path / "f.wav", np.random.default_rng(3).bytes(5000)))
    assert "not a recording" in failure(written(tmp_path / "g.wav", wav_bytes(pcm16(sweep(1.0)))[:30]))
    (tmp_path / "x.wav").mkdir()
    assert "folder" in failure(tmp_path / "x.wav")
    assert "No such file" in failure(tmp_path / "gone.wav")
    assert "path" in failure("nul\0byte.wav")
    assert "device" in failure("/dev/null")


def test_every_message_names_the_file(tmp_path):
    assert str(tmp_path / "gone.wav") in failure(tmp_path / "gone.wav")


@pytest.mark.parametrize(("container", "codec"), [("mp4", "mpeg4"), ("matroska", "mpeg4")])
def test_a_video_without_an_audio_track(tmp_path, container, codec):
    message = failure(silent_film(tmp_path / "film.mp4", container, codec))
    assert "no audio track" in message and "video" in message


def test_an_unreadable_file(tmp_path):
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(sweep(0.1))))
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        message = failure(path)
    finally:
        if root:
            os.seteuid(0)
    assert "Permission denied" in message


def test_a_playlist_opens_nothing(tmp_path):
    secret = encode(tmp_path / "secret.ts", "mpegts", "aac", sweep(1.0, 48000), 48000)
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{secret}\n#EXT-X-ENDLIST\n"
    assert "not a recording" in failure(written(tmp_path / "x.m3u8", playlist.encode()))


# Which decoder ---------------------------------------------------------------------------------------


def decoder(frames, total, warning):
    class Fake:
        sample_rate, channels = 10, 1

        def __init__(self, file):
            self.total, self.warnings = total, [warning]

        def blocks(self, first, last):
            yield np.zeros((frames, 1), np.float32)

        def close(self):
            self.closed = True

    return Fake


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((100, 100), (50, None), (100, ["first"])),
        ((20, 100), (50, None), (50, ["second", "truncated or damaged: 5.00 s of 10.00 s could be decoded"])),
        ((50, 100), (20, None), (50, ["first", "truncated or damaged: 5.00 s of 10.00 s could be decoded"])),
        ((20, 100), (100, None), (100, ["second"])),
        ((50, None), (90, None), (50, ["first"])),
    ],
)
def test_the_decoder_that_gets_more_wins(tmp_path, monkeypatch, first, second, expected):
    fakes = decoder(*first, "first"), decoder(*second, "second")
    monkeypatch.setattr("oasr.audio.decode._DECODERS", fakes)
    monkeypatch.setattr("oasr.audio.decode._LOWEST_RATE", 1)
    audio = read_audio(row(written(tmp_path / "x", b"x")))
    assert (len(audio.samples), list(audio.warnings)) == expected
