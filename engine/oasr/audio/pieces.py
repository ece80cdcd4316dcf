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
from oasr.audio.decode import decode
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
        try:
            self._run(_Recording(self, utterance, policy, emit), ())
        except _MixCancelsError as found:
            channel = found.channel
            self._run(_Recording(self, utterance, channel, emit), (cancelled_warning(channel),))

    def _run(self, recording: _Recording, warnings: tuple[str, ...]) -> None:
        reading = decode(
            recording.utterance, recording.open_sink, allow_pipes=self.allow_pipes, cancel=self.cancel
        )
        recording.finish(reading.warnings + warnings)


class _MixCancelsError(Exception):
    """The mix of the channels is silent; `channel` is the loudest one."""

    def __init__(self, channel: int) -> None:
        super().__init__(channel)
        self.channel = channel


class _Recording:
    """One recording on its way through the decoders: it piles up until it is known to be long."""

    def __init__(self, reader: PieceReader, utterance: Utterance, policy: Channel, emit: Emit) -> None:
        self.utterance = utterance
        self._reader, self._policy, self._emit = reader, policy, emit
        self._mono: MonoSink
        self._rate = self._channels = self._fed = 0
        self._live = False
        self._rows: list[Utterance] = []
        self._planners: list[WindowPlanner] = []
        self._planned = 0
        self._warnings: tuple[str, ...] = ()

    def open_sink(self, rate: int, channels: int) -> _Feed:
        """A sink for one decoder; one that is tried behind another goes on where windows have been cut."""
        if not self._live:
            # No window has been cut: this decoder begins at the beginning.
            self._mono = MonoSink(self._policy, rate, channels, self._reader.sample_rate)
            self._rate, self._channels, self._fed = rate, channels, 0
            return _Feed(self, 0)
        if (rate, channels) == (self._rate, self._channels):
            return _Feed(self, self._fed)
        self._warnings = ("the rest could be decoded at another rate or number of channels only: left out",)
        return _Feed(self, None)

    def feed(self, block: np.ndarray) -> None:
        """Take (n, channels) float32 samples."""
        self._mono.add(block)
        self._fed += len(block)
        if self._live:
            self._emit(self._pieces(self._mono.take()))
        elif self._fed > LONG_S * self._rate:
            # Nothing has left yet, so a mix that cancels by now is begun anew with one channel. Behind this,
            # windows are out: the channel changes where it shows.
            self._check_mix()
            self._mono.picker.falls_back = True
            self._live = True
            self._start()
            self._emit(self._pieces(self._mono.take()))

    def finish(self, warnings: tuple[str, ...]) -> None:
        """Hand on the rest, the recording having been read to its end."""
        if not self._live:
            self._check_mix()
            self._start()
        picker = self._mono.picker
        # The picker has given the mix up on the way.
        if self._policy == "mix" and isinstance(picker.policy, int):
            self._warnings += (cancelled_warning(picker.policy),)
        parts = self._pieces(self._mono.finish())
        last = [tuple(planner.finish()) for planner in self._planners]
        endings = [self._ending(planner, warnings) for planner in self._planners]
        self._emit(
            [
                (row, Piece(piece.windows + windows, ending))
                for (row, piece), windows, ending in zip(parts, last, endings, strict=True)
            ]
        )

    def _start(self) -> None:
        count = self._mono.picker.outputs
        rows = split_rows(self.utterance, count) if self._policy == "split" else [self.utterance]
        self._rows = rows
        self._planners = [self._reader.planning.planner(self._reader.sample_rate) for _ in rows]

    def _pieces(self, channels: list[np.ndarray]) -> Parts:
        """The windows that are certain with these samples, (n,) a row."""
        for samples in channels if self._live else ():
            # `decode` judges a recording at its end, which windows of a long one do not wait for.
            if not np.isfinite(samples).all():
                at_s = self.utterance.offset + self._planned / self._reader.sample_rate
                raise AudioError(f"samples are NaN or infinite within the block from {at_s:.1f} s on")
        self._planned += len(channels[0])
        return [
            (row, Piece(tuple(planner.add(samples))))
            for row, planner, samples in zip(self._rows, self._planners, channels, strict=True)
        ]

    def _ending(self, planner: WindowPlanner, warnings: tuple[str, ...]) -> Ending:
        rate, offset = self._reader.sample_rate, self.utterance.offset
        speech = None
        if planner.speech is not None:
            speech = tuple((offset + r.start / rate, offset + r.end / rate) for r in planner.speech)
        return Ending(self._fed / self._rate, warnings + self._warnings, speech)

    def _check_mix(self) -> None:
        loudest = self._mono.picker.loudest_if_cancelled()
        if loudest is not None:
            raise _MixCancelsError(loudest)


class _Feed:
    """The sink of one decoder.

    Passes over the first `skip` frames, which an earlier decoder has given; with None it passes over all.
    """

    def __init__(self, recording: _Recording, skip: int | None) -> None:
        self._recording, self._skip = recording, skip

    def add(self, block: np.ndarray) -> None:
        if self._skip is None:
            return
        passed = min(self._skip, len(block))
        self._skip -= passed
        if passed < len(block):
            self._recording.feed(block[passed:])
