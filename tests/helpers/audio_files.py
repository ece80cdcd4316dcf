"""Small recordings made on the spot: WAV headers written by hand, other containers encoded by PyAV."""

import struct
from pathlib import Path

import av
import numpy as np


def sweep(
    seconds: float, rate: int = 16000, channels: int = 1, low: float = 200.0, high: float = 3000.0
) -> np.ndarray:
    """(frames, channels) float32 whose pitch rises all the time, so that every moment is distinct."""
    t = np.arange(round(seconds * rate)) / rate
    phase = 2 * np.pi * (low * t + (high - low) * t**2 / (2 * seconds))
    return np.stack([0.5 * np.sin(phase + c) for c in range(channels)], axis=1).astype(np.float32)


def pcm16(samples: np.ndarray) -> bytes:
    """Little-endian 16-bit PCM of float samples."""
    return np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def wav_bytes(
    data: bytes, *, rate: int = 16000, channels: int = 1, kind: str = "s16", size: int | None = None
) -> bytes:
    """A WAV file of raw samples (u8, s16, s24, s32, f32, f64) with any `size` in its header (None = true)."""
    bits, tag = int(kind[1:]), 3 if kind[0] == "f" else 1
    frame = channels * bits // 8
    data_size = len(data) if size is None else size
    riff_size = min(data_size + 36, 0xFFFFFFFF) if data_size else 0
    fmt = struct.pack("<HHIIHH", tag, channels, rate, rate * frame, frame, bits)
    return (
        b"RIFF" + struct.pack("<I", riff_size) + b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt
        + b"data" + struct.pack("<I", data_size) + data
    )  # fmt: skip


def encode(path: Path, container: str, codec: str, samples: np.ndarray, rate: int) -> Path:
    """Write (frames, channels) samples with one of FFmpeg's encoders."""
    layout = "mono" if samples.shape[1] == 1 else "stereo"
    frame = av.AudioFrame.from_ndarray(
        np.frombuffer(pcm16(samples), "<i2")[None], format="s16", layout=layout
    )
    frame.sample_rate, frame.pts = rate, 0
    with av.open(str(path), "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate)
        stream.layout = layout
        out.start_encoding()
        context = stream.codec_context
        shaped = av.AudioResampler(context.format, layout, rate, frame_size=context.frame_size or 1024)
        for part in shaped.resample(frame) + shaped.resample(None):
            out.mux(stream.encode(part))
        out.mux(stream.encode(None))
    return path


def silent_film(path: Path, container: str = "mp4", codec: str = "mpeg4") -> Path:
    """A video without an audio track."""
    with av.open(str(path), "w", format=container) as out:
        stream = out.add_stream(codec, rate=10)
        stream.width = stream.height = 32
        stream.pix_fmt = "yuv420p"
        for _ in range(5):
            image = np.zeros((32, 32, 3), np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        out.mux(stream.encode(None))
    return path
