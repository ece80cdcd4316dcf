"""A recording → the windows that are decoded, handed on in pieces while a long one is still being read.

A recording of up to LONG_S comes in one piece, when it has been read to the end. Of a longer one no more is
ever held than what the planner still has to look at and what nobody has taken yet: `emit` may wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from oasr.audio.channels import Channel, split_rows
from oasr.audio.cutting import AudioWindow
from oasr.audio.decode import Source, decode
from oasr.audio.waveform import MonoSink, cancelled_warning, channel_policy
from oasr.audio.windows import Planning, WindowPlanner
from oasr.errors import AudioError
from oasr.types import Utterance

LONG_S = 120.0


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of a row once its recording has been read.

    Attributes:
        duration_s: seconds of the stretch in the original recording.
        warnings: what the reader had to put up with.
        speech: regions of speech in seconds of the original recording; None when nobody looked for them.
    """

    duration_s: float
    warnings: tuple[str, ...] = ()
    speech: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Windows of one row, those that follow the ones before; `ended` is None while there will be more."""

    windows: tuple[AudioWindow, ...]
    ended: Ending | None = None


Parts = list[tuple[Utterance, Piece]]
"""A piece of each row of one recording: one row, or one a channel when it is split."""
Emit = Callable[[Parts], None]


@dataclass(frozen=True, slots=True)
class PieceReader:
    """Reads recordings in pieces; any number of threads may share one.

    Attributes:
        sample_rate: Hz of the windows.
        planning: how they are cut.
        channel: "mix", "split" or a channel number, for rows that do not say.
        allow_pipes: run the shell commands of Kaldi rows.
        cancel: gives up (ReadCancelledError) once set.
    """

    sample_rate: int
    planning: Planning
    channel: Channel = "mix"
    allow_pipes: bool = False
    cancel: threading.Event = field(default_factory=threading.Event)

    def read(self, utterance: Utterance, emit: Emit) -> None:
        """Read `utterance` and hand its pieces to `emit`, in order; the last one is ended.

        Raises:
            AudioError: the recording cannot be read or lacks the channel.
            RequestError: it is longer than the planning allows. Both may come after some pieces.
            ReadCancelledError: `cancel` was set meanwhile.
        """
        policy = channel_policy(utterance, self.channel)
        with Source(utterance, self.allow_pipes, self.cancel) as source:
            try:
                _run(source, _Recording(self, utterance, policy, emit), ())
            except _MixCancelsError as found:
                channel = found.channel
                _run(source, _Recording(self, utterance, channel, emit), (cancelled_warning(channel),))


def _run(source: Source, recording: _Recording, warnings: tuple[str, ...]) -> None:
    reading = decode(source, recording.open_sink)
    recording.finish(reading.sink.take, reading.warnings + warnings)


class _MixCancelsError(Exception):
    """The mix of the channels is silent; `channel` is the loudest one."""

    def __init__(self, channel: int) -> None:
        super().__init__(channel)
        self.channel = channel


class _Take:
    """What one decoder gives: samples that pile up until they are taken out, and how many came."""

    def __init__(self, policy: Channel, rate: int, channels: int, target_rate: int) -> None:
        self.mono = MonoSink(policy, rate, channels, target_rate)
        self.rate, self.channels, self.fed = rate, channels, 0

    def add(self, block: np.ndarray) -> None:
        self.mono.add(block)
        self.fed += len(block)


class _Recording:
    """One recording on its way through the decoders: it piles up until it is known to be long."""

    def __init__(self, reader: PieceReader, utterance: Utterance, policy: Channel, emit: Emit) -> None:
        self.utterance = utterance
        self._reader, self._policy, self._emit = reader, policy, emit
        self._live: _Take | None = None  # the one that windows have been cut from
        self._rows: list[Utterance] = []
        self._planners: list[WindowPlanner] = []
        self._planned = 0
        self._warnings: tuple[str, ...] = ()

    def open_sink(self, rate: int, channels: int) -> _Feed:
        """A sink for one decoder; one that is tried behind another goes on where windows have been cut."""
        live = self._live
        if live is None:
            # No window has been cut: this decoder begins at the beginning. What those before it gave is kept,
            # as it may turn out to be the most that can be had.
            return _Feed(self, _Take(self._policy, rate, channels, self._reader.sample_rate), 0)
        if (rate, channels) == (live.rate, live.channels):
            return _Feed(self, live, live.fed)
        self._warnings = ("the rest could be decoded at another rate or number of channels only: left out",)
        return _Feed(self, live, None)

    def fed(self, take: _Take) -> None:
        """`take` has got samples."""
        if self._live is None and take.fed > LONG_S * take.rate:
            # Nothing has left yet, so a mix that cancels by now is begun anew with one channel. Behind this,
            # windows are out: the channel changes where it shows.
            _check_mix(take)
            take.mono.picker.falls_back = True
            self._start(take)
            self._live = take
        if self._live is not None:
            self._emit(self._pieces(take.mono.take()))

    def finish(self, best: _Take, warnings: tuple[str, ...]) -> None:
        """Hand on the rest, the recording having been read to its end; `best` is the reading to be used."""
        take = self._live or best
        if self._live is None:
            _check_mix(take)
            self._start(take)
        picker = take.mono.picker
        # The picker has given the mix up on the way.
        if self._policy == "mix" and isinstance(picker.policy, int):
            self._warnings += (cancelled_warning(picker.policy),)
        parts = self._pieces(take.mono.finish())
        last = [tuple(planner.finish()) for planner in self._planners]
        duration_s = take.fed / take.rate
        endings = [self._ending(planner, duration_s, warnings) for planner in self._planners]
        self._emit(
            [
                (row, Piece(piece.windows + windows, ending))
                for (row, piece), windows, ending in zip(parts, last, endings, strict=True)
            ]
        )

    def _start(self, take: _Take) -> None:
        count = take.mono.picker.outputs
        rows = split_rows(self.utterance, count) if self._policy == "split" else [self.utterance]
        self._rows = rows
        self._planners = [self._reader.planning.planner(self._reader.sample_rate) for _ in rows]

    def _pieces(self, channels: list[np.ndarray]) -> Parts:
        """The windows that are certain with these samples, (n,) a row."""
        for samples in () if self._live is None else channels:
            # `decode` judges a recording at its end, which windows of a long one do not wait for.
            if not np.isfinite(samples).all():
                at_s = self.utterance.offset + self._planned / self._reader.sample_rate
                raise AudioError(f"samples are NaN or infinite within the block from {at_s:.1f} s on")
        self._planned += len(channels[0])
        return [
            (row, Piece(tuple(planner.add(samples))))
            for row, planner, samples in zip(self._rows, self._planners, channels, strict=True)
        ]

    def _ending(self, planner: WindowPlanner, duration_s: float, warnings: tuple[str, ...]) -> Ending:
        rate, offset = self._reader.sample_rate, self.utterance.offset
        speech = None
        if planner.speech is not None:
            speech = tuple((offset + r.start / rate, offset + r.end / rate) for r in planner.speech)
        return Ending(duration_s, warnings + self._warnings, speech)


def _check_mix(take: _Take) -> None:
    loudest = take.mono.picker.loudest_if_cancelled()
    if loudest is not None:
        raise _MixCancelsError(loudest)


class _Feed:
    """The sink of one decoder: gives `take` its samples.

    Passes over the first `skip` frames, which an earlier decoder has given; with None it passes over all.
    """

    def __init__(self, recording: _Recording, take: _Take, skip: int | None) -> None:
        self.take = take
        self._recording, self._skip = recording, skip

    def add(self, block: np.ndarray) -> None:
        if self._skip is None:
            return
        passed = min(self._skip, len(block))
        self._skip -= passed
        if passed < len(block):
            self.take.add(block[passed:])
            self._recording.fed(self.take)
