"""Utterance → samples, by trying real decoders: libsndfile first, then FFmpeg. Names are never trusted."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import IO, Generic, Protocol, TypeVar

import numpy as np

from oasr.audio.arrays import ArrayStream
from oasr.audio.ffmpeg import FfmpegStream
from oasr.audio.sndfile import SndfileStream
from oasr.audio.source import open_source
from oasr.audio.streams import AudioStream, ReadCancelledError, UnreadableError
from oasr.audio.stretch import SLACK_S, Stretch
from oasr.errors import AudioError
from oasr.types import Utterance

_LOWEST_RATE = 1000
"""Hz. Nobody records speech at less, and resampling from 1 Hz would make days of a few megabytes."""
_LOUDEST = 8.0
"""A float recording may overshoot full scale after a filter or a mix, though not by 18 dB."""
_DECODERS: tuple[Callable[[IO[bytes]], AudioStream], ...] = (SndfileStream, FfmpegStream)


class Sink(Protocol):
    """Takes the blocks of one recording as they are decoded."""

    def add(self, block: np.ndarray) -> None:
        """Take (n, channels) float32 samples."""
        ...


S = TypeVar("S", bound=Sink)
SinkFactory = Callable[[int, int], S]
"""(sample_rate, channels) → Sink; called again when a second decoder is tried."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[S]):
    """What one decoder made of a stretch.

    Attributes:
        sink: what took the samples.
        sample_rate: Hz of the recording.
        frames: frames that were handed to the sink.
        total_s: seconds that the container promises for the recording; None when it does not say.
        stretch: the part that was asked for.
        warnings: what had to be put up with.
    """

    sink: S
    sample_rate: int
    frames: int
    total_s: float | None
    stretch: Stretch
    warnings: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True when another decoder cannot do better."""
        return self.frames > 0 and self.expected_s - self.frames / self.sample_rate <= SLACK_S

    @property
    def expected_s(self) -> float:
        """Seconds of the stretch that should be there by the word of the container (0 = it gives none)."""
        if self.total_s is None:
            return 0.0
        return min(self.total_s - self.stretch.offset, self.stretch.duration or math.inf)


@dataclass(frozen=True, slots=True)
class DecodedAudio:
    """A stretch of a recording at its native rate.

    Attributes:
        samples: (frames, channels) float32, full scale 1.
        sample_rate: Hz.
        start_s: where the stretch starts in the recording.
        warnings: what had to be put up with.
    """

    samples: np.ndarray
    sample_rate: int
    start_s: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """Seconds of audio."""
        return len(self.samples) / self.sample_rate


class Source:
    """A recording for any number of readings: it is opened once, since a pipe gives what it has only once.

    Attributes:
        utterance: its row.
        cancel: gives up (ReadCancelledError) once set.
    """

    def __init__(
        self, utterance: Utterance, allow_pipes: bool = False, cancel: threading.Event | None = None
    ) -> None:
        """Nothing is opened before the first reading."""
        self.utterance, self.cancel = utterance, cancel
        self._allow_pipes = allow_pipes
        self._file: IO[bytes] | None = None

    def file(self) -> IO[bytes]:
        """See `open_source`."""
        if self._file is None:
            self._file = open_source(self.utterance, self._allow_pipes, self.cancel)
        return self._file

    def __enter__(self) -> Source:
        """The source itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class _Collect:
    def __init__(self, sample_rate: int, channels: int) -> None:
        self.blocks: list[np.ndarray] = []

    def add(self, block: np.ndarray) -> None:
        self.blocks.append(block)


def read_audio(
    utterance: Utterance, *, allow_pipes: bool = False, cancel: threading.Event | None = None
) -> DecodedAudio:
    """The samples of `utterance` (offset and duration applied) at the native rate, all channels.

    Raises:
        AudioError: it cannot be read; the message names the file, what was expected and what was found.
        ReadCancelledError: `cancel` was set meanwhile.
    """
    with Source(utterance, allow_pipes, cancel) as source:
        reading = decode(source, _Collect)
    samples = np.concatenate(reading.sink.blocks)
    return DecodedAudio(samples, reading.sample_rate, utterance.offset, reading.warnings)


def decode(source: Source, open_sink: SinkFactory[S]) -> Reading[S]:
    """Feed the samples of `source` to a sink, block by block, and say how it went.

    Raises:
        AudioError, ReadCancelledError: as `read_audio`.
    """
    utterance, cancel = source.utterance, source.cancel
    try:
        stretch = Stretch.of(utterance)
        if utterance.samples is not None:
            reading = _drain(ArrayStream(utterance), stretch, open_sink, cancel)
        else:
            reading = _best(source.file(), stretch, open_sink, cancel)
        return _judged(reading)
    except AudioError as error:
        where = utterance.audio or ("command" if utterance.command else "samples")
        raise AudioError(f"{where}: {error}") from None


def _best(
    file: IO[bytes], stretch: Stretch, open_sink: SinkFactory[S], cancel: threading.Event | None
) -> Reading[S]:
    """The first complete reading, else the one with the most samples."""
    best: Reading[S] | None = None
    reason = ""
    for open_stream in _DECODERS:
        file.seek(0)
        try:
            stream = open_stream(file)
        except UnreadableError as error:
            reason = str(error)
            continue
        try:
            reading = _drain(stream, stretch, open_sink, cancel)
        finally:
            stream.close()
        # What the first decoder knows of the length holds for the second too, which could not be found
        # incomplete otherwise.
        if best is not None and reading.total_s is None:
            reading = replace(reading, total_s=best.total_s)
        if reading.complete:
            return reading
        # In seconds: decoders may tell different rates of one file.
        if best is None or reading.frames / reading.sample_rate > best.frames / best.sample_rate:
            best = reading
    if best is None:
        raise AudioError(f"not a recording that can be decoded: {reason}; {_found(file)}")
    return best


def _drain(
    stream: AudioStream, stretch: Stretch, open_sink: SinkFactory[S], cancel: threading.Event | None
) -> Reading[S]:
    """Run the stretch of one decoder into a new sink."""
    rate = stream.sample_rate
    if rate < _LOWEST_RATE:
        raise AudioError(f"sample rate: expected at least {_LOWEST_RATE} Hz, found {rate} Hz")
    first, last = stretch.frames(rate)
    sink, check, frames = open_sink(rate, stream.channels), _SampleCheck(), 0
    for block in stream.blocks(first, last):
        if cancel is not None and cancel.is_set():
            raise ReadCancelledError
        check.add(block, frames)
        sink.add(block)
        frames += len(block)
    warnings = check.judge(stretch.offset, rate)
    total_s = None if stream.total is None else stream.total / rate
    return Reading(sink, rate, frames, total_s, stretch, (*stream.warnings, *warnings))


def _judged(reading: Reading[S]) -> Reading[S]:
    """`reading` with the warnings about its length; AudioError when there is nothing in it."""
    if not reading.frames:
        damage = f" ({'; '.join(reading.warnings)})" if reading.warnings else ""
        raise AudioError(reading.stretch.absent(reading.total_s) + damage)
    warnings = list(reading.warnings)
    # By the word of its container it was cut off; else it is whole, and the row may ask for more than it has.
    if not reading.complete:
        have_s = reading.frames / reading.sample_rate
        warnings.append(
            f"truncated or damaged: {have_s:.2f} s of {reading.expected_s:.2f} s could be decoded"
        )
    else:
        shortage = reading.stretch.shortage(reading.sample_rate, reading.frames)
        warnings += [shortage] if shortage else []
    return replace(reading, warnings=tuple(warnings))


class _SampleCheck:
    """Finds the peak, and counts samples that are no numbers: one would spoil every feature of its window."""

    def __init__(self) -> None:
        self._count, self._first, self._peak = 0, 0, 0.0

    def add(self, block: np.ndarray, position: int) -> None:
        # NaN spreads to both extremes: where they are finite, so is all between them.
        peak = max(-float(block.min(initial=0)), float(block.max(initial=0)))
        if math.isfinite(peak):
            self._peak = max(self._peak, peak)
            return
        good = np.isfinite(block)
        if not self._count:
            self._first = position + int(np.argmin(good.all(axis=1)))
        self._count += int(good.size - np.count_nonzero(good))

    def judge(self, offset: float, sample_rate: int) -> tuple[str, ...]:
        """Warnings; AudioError when a sample is no number."""
        if self._count:
            at = offset + self._first / sample_rate
            raise AudioError(f"{self._count} samples are NaN or infinite, the first at {at:.4f} s")
        if self._peak <= _LOUDEST:
            return ()
        return (
            f"samples reach {self._peak:.6g} where 1 is full scale: integers that became floats without "
            "being divided (by 32768, for 16 bits) sound like noise to a model",
        )


def _found(file: IO[bytes]) -> str:
    """What the file starts with, for a message."""
    file.seek(0)
    head = file.read(32) or b""
    if not head:
        return "the file has 0 bytes"
    text = head.decode("utf-8", errors="replace")
    if text.isprintable() or all(c.isprintable() or c.isspace() for c in text):
        return f"it starts with the text {text.strip()!r}"
    return f"it starts with the bytes {head[:12].hex(' ')}"
