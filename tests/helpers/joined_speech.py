"""The demo's utterances in one recording, with known pauses between them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

RATE = 16000
NOISE = 1e-3
"""Standard deviation of the noise in the pauses: -60 dB."""


@dataclass(frozen=True)
class Said:
    """One utterance in the joined recording, in seconds."""

    id: str
    text: str
    start: float
    end: float


def joined(manifest: Path, pauses: tuple[float, ...]) -> tuple[np.ndarray, list[Said]]:
    """(frames,) float32 at 16 kHz: pause, utterance, pause, ..., pause; the pauses come round and round."""
    from oasr.audio.waveform import read_waveforms
    from oasr.types import Utterance

    random, parts, said, at = np.random.default_rng(4), [], [], 0
    rows = [json.loads(line) for line in manifest.read_text("utf-8").splitlines()]
    for number, row in enumerate([*rows, None]):
        pause = random.normal(0, NOISE, round(pauses[number % len(pauses)] * RATE)).astype(np.float32)
        parts.append(pause)
        at += len(pause)
        if row is None:
            break
        source = Utterance(row["id"], str(manifest.parent / row["audio"]))
        samples = read_waveforms(source, RATE)[0][1].samples
        said.append(Said(row["id"], row["text"], at / RATE, (at + len(samples)) / RATE))
        parts.append(samples)
        at += len(samples)
    return np.concatenate(parts), said


def write(path: Path, samples: np.ndarray) -> Path:
    """Write 16-bit samples at 16 kHz in the format that the name says."""
    soundfile.write(path, samples, RATE)
    return path
