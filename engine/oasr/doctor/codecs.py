"""Containers and codecs: a second of tone is written in each and read back through the reader of a run."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.doctor.finding import Finding
from oasr.errors import AudioError
from oasr.types import Utterance

if TYPE_CHECKING:
    import numpy as np

RATE = 16000
_MEND = "pip install --force-reinstall soundfile av"
Encode = Callable[["np.ndarray"], bytes]


def check_codecs(_: str) -> Iterator[Finding]:
    """A finding for those that work together, and one for each that does not."""
    good, untested = [], []
    with tempfile.TemporaryDirectory(prefix="oasr-doctor-") as folder:
        for name, encode in SAMPLES.items():
            path = Path(folder) / name.replace("/", ".")
            try:
                path.write_bytes(encode(tone()))
            except Exception as error:  # the encoder's own errors, whichever library it is of
                untested.append(f"{name} ({type(error).__name__})")
                continue
            if (problem := _problem(path)) is None:
                good.append(name)
            else:
                yield Finding(f"codec {name}", "warning", problem, _MEND)
    if good:
        yield Finding("codecs", "ok", ", ".join(good))
    else:
        yield Finding("codecs", "fails", "not one container can be read", _MEND)
    if untested:
        yield Finding("codecs not tried", "ok", f"nothing here writes a sample: {', '.join(untested)}")


def tone() -> np.ndarray:
    """One second of 440 Hz at a quarter of full scale: (16000,) int16."""
    import numpy as np

    return (np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE) * 8000).astype(np.int16)


def _problem(path: Path) -> str | None:
    """What is wrong with what comes back; lossy codecs may pad and soften, not lose or silence."""
    import numpy as np

    from oasr.audio.decode import read_audio

    try:
        audio = read_audio(Utterance(path.name, str(path)))
    except AudioError as error:
        return str(error)
    if not 0.8 <= audio.duration_s <= 1.3:
        return f"one second came back as {audio.duration_s:.2f} s"
    level = float(np.sqrt(np.mean(np.square(audio.samples))))
    return None if 0.08 <= level <= 0.35 else f"a level of 0.17 came back as {level:.3f}"


def _by_soundfile(container: str, subtype: str, samples: np.ndarray) -> bytes:
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format=container, subtype=subtype)
    return file.getvalue()


def _by_av(container: str, codec: str, rate: int, samples: np.ndarray) -> bytes:
    import av

    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream: Any = output.add_stream(codec, rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None, :].copy(), format="s16", layout="mono")
        frame.sample_rate = RATE
        context = stream.codec_context
        fit = av.AudioResampler(context.format, "mono", rate, frame_size=context.frame_size or None)
        for piece in (*fit.resample(frame), *fit.resample(None), None):
            output.mux(stream.encode(piece))
    return file.getvalue()


SAMPLES: dict[str, Encode] = {
    "wav": partial(_by_soundfile, "WAV", "PCM_16"),
    "wav/u-law": partial(_by_soundfile, "WAV", "ULAW"),
    "flac": partial(_by_soundfile, "FLAC", "PCM_16"),
    "ogg/vorbis": partial(_by_soundfile, "OGG", "VORBIS"),
    "ogg/opus": partial(_by_soundfile, "OGG", "OPUS"),
    "mp3": partial(_by_soundfile, "MP3", "MPEG_LAYER_III"),
    "aiff": partial(_by_soundfile, "AIFF", "PCM_16"),
    "au": partial(_by_soundfile, "AU", "PCM_16"),
    "caf": partial(_by_soundfile, "CAF", "PCM_16"),
    "w64": partial(_by_soundfile, "W64", "PCM_16"),
    "m4a/aac": partial(_by_av, "mp4", "aac", RATE),
    "mov/aac": partial(_by_av, "mov", "aac", RATE),
    "aac": partial(_by_av, "adts", "aac", RATE),
    "webm/opus": partial(_by_av, "webm", "libopus", 48000),
    "mkv/opus": partial(_by_av, "matroska", "libopus", 48000),
    "amr": partial(_by_av, "amr", "libopencore_amrnb", 8000),
}
