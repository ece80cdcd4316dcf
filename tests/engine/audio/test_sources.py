import os
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.audio_files import pcm16, sweep, wav_bytes
from oasr.audio import source
from oasr.audio.decode import read_audio
from oasr.audio.pieces import PieceReader
from oasr.audio.streams import ReadCancelledError
from oasr.audio.waveform import read_waveforms
from oasr.audio.windows import Planning
from oasr.errors import AudioError
from oasr.types import Utterance


def written(path, content):
    path.write_bytes(content)
    return path


def test_names_that_are_no_utf8(tmp_path):
    path = written(Path(tmp_path, os.fsdecode(b"caf\xe9 \xff.wav")), wav_bytes(pcm16(sweep(0.1))))
    assert len(read_audio(Utterance("u", str(path))).samples) == 1600


def test_a_named_pipe_is_read_to_its_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    content = wav_bytes(pcm16(sweep(1.0)), size=0xFFFFFFFF)
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    assert len(read_audio(Utterance("u", str(tmp_path / "pipe"))).samples) == 16000
    writer.join()


@pytest.mark.parametrize("piped", ["pipe", "command"])
@pytest.mark.parametrize("whole", [True, False])
def test_channels_that_cancel_are_read_again_from_the_copy_of_what_came_once(tmp_path, piped, whole):
    samples = sweep(1.0)
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(np.column_stack([samples, -samples])), channels=2))
    if piped == "command":
        row = Utterance("u", command=f"cat {path}; rm {path}")
    else:
        os.mkfifo(tmp_path / "pipe")
        row = Utterance("u", str(tmp_path / "pipe"))
        threading.Thread(target=Path(row.audio).write_bytes, args=(path.read_bytes(),), daemon=True).start()
    if whole:
        ((_, waveform),) = read_waveforms(row, 16000, allow_pipes=True)
        found, warnings = waveform.samples, waveform.warnings
    else:
        pieces = []
        PieceReader(16000, Planning(), allow_pipes=True).read(row, pieces.extend)
        ((_, piece),) = pieces
        found = np.concatenate([window.samples for window in piece.windows])
        warnings = piece.ended.warnings
    assert np.abs(found).max() > 0.1 and "channel 0, the loudest, is used alone" in warnings[0]


def test_a_named_pipe_whose_writer_takes_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "_WRITER_S", 1.0)
    os.mkfifo(tmp_path / "pipe")
    content = wav_bytes(pcm16(sweep(0.5)))

    def write():
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
            for start in range(0, len(content), 6000):
                threading.Event().wait(0.6 if start else 0.0)
                pipe.write(content[start : start + 6000])

    writer = threading.Thread(target=write)
    writer.start()
    assert len(read_audio(Utterance("u", str(tmp_path / "pipe"))).samples) == 8000
    writer.join()


def test_a_named_pipe_that_nobody_writes_to_is_no_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "_WRITER_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AudioError, match="a pipe without a writer"):
        read_audio(Utterance("u", str(tmp_path / "pipe")))


def test_waiting_for_a_pipe_can_be_cancelled(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(ReadCancelledError):
        read_audio(Utterance("u", str(tmp_path / "pipe")), cancel=cancel)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [("float32", 1), ("float64", 1), ("float16", 1), ("int16", 32767), ("int32", 2**31 - 128)],
)
def test_samples_in_memory(dtype, scale):
    source = sweep(0.5, channels=2).astype(np.float64)
    samples = (source * scale).astype(dtype)
    audio = read_audio(Utterance("u", samples=samples, sample_rate=16000, offset=0.25))
    np.testing.assert_allclose(audio.samples, source[4000:], atol=1e-3)
    assert audio.samples.dtype == np.float32
    mono = read_audio(Utterance("u", samples=samples[:, 0], sample_rate=16000))
    np.testing.assert_allclose(mono.samples[:, 0], source[:, 0], atol=1e-3)


def test_unsigned_bytes_in_memory_are_centred():
    samples = np.array([0, 128, 255], np.uint8)
    audio = read_audio(Utterance("u", samples=samples, sample_rate=8000))
    np.testing.assert_allclose(audio.samples[:, 0], [-1.0, 0.0, 127 / 128])


def test_the_array_of_the_caller_is_left_alone():
    samples = sweep(0.1)[:, 0]
    before = samples.copy()
    read_audio(Utterance("u", samples=samples, sample_rate=8000)).samples[:] = 9
    np.testing.assert_array_equal(samples, before)


@pytest.mark.parametrize(
    ("samples", "rate", "word"),
    [
        (np.zeros(10, np.float32), None, "sample_rate"),
        (np.zeros(10, np.float32), 0, "sample_rate"),
        (np.zeros(10, np.float32), 16000.5, "sample_rate"),
        (np.zeros(10, complex), 16000, "complex"),
        (np.zeros(10, bool), 16000, "bool"),
        (np.zeros((2, 16000), np.float32), 16000, "(2, 16000)"),
        (np.zeros((1, 2, 3), np.float32), 16000, "(1, 2, 3)"),
        (np.float32(1), 16000, "()"),
        (np.zeros(0, np.float32), 16000, "no samples"),
        (np.zeros((10, 0), np.float32), 16000, "(10, 0)"),
        (np.array([0, np.nan], np.float32), 16000, "NaN"),
    ],
)
def test_arrays_that_cannot_be_used(samples, rate, word):
    with pytest.raises(AudioError) as caught:
        read_audio(Utterance("u", samples=samples, sample_rate=rate))
    assert word in str(caught.value)


def test_floats_that_were_never_scaled_are_named():
    scaled = np.sin(np.arange(16000) / 20).astype(np.float32)
    read = read_audio(Utterance("u", samples=scaled * 30000, sample_rate=16000))
    (warning,) = read.warnings
    assert "samples reach 30000 where 1 is full scale" in warning
    assert not read_audio(Utterance("u", samples=scaled * 3, sample_rate=16000)).warnings


# Commands -------------------------------------------------------------------------------------------


def test_a_command_runs_with_consent_only(tmp_path):
    path = written(tmp_path / "x.wav", wav_bytes(pcm16(sweep(1.0))))
    utterance = Utterance("u", command=f"cat '{path}' | cat", offset=0.5)
    with pytest.raises(AudioError, match="--allow-pipes"):
        read_audio(utterance)
    assert len(read_audio(utterance, allow_pipes=True).samples) == 8000


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo 'bad input file' >&2; exit 7", ("exit status 7", "bad input file")),
        ("no-such-program-anywhere", ("exit status 127", "no-such-program-anywhere")),
        ("true", ("0 bytes",)),
        ("echo hello", ("not a recording", "hello")),
    ],
)
def test_commands_that_fail(command, words):
    with pytest.raises(AudioError) as caught:
        read_audio(Utterance("u", command=command), allow_pipes=True)
    assert all(word in str(caught.value) for word in words)
