"""Utterance → mono waveforms at the model's rate: decode, pick channels and resample in one pass."""

from __future__ import annotations

import threading

import numpy as np

from oasr.audio.channels import Channel, ChannelPicker, parse_channel, split_rows
from oasr.audio.decode import Reading, Source, decode
from oasr.audio.resample import Resampler
from oasr.errors import AudioError, OptionsError
from oasr.types import Utterance, Waveform


class MonoSink:
    """Picks channels of each block and resamples what is left."""

    def __init__(self, policy: Channel, sample_rate: int, channels: int, target_rate: int) -> None:
        self.picker = ChannelPicker(policy, channels)
        self._resampler = Resampler(sample_rate, target_rate, self.picker.outputs)

    def add(self, block: np.ndarray) -> None:
        """Take (n, channels) float32 samples."""
        self._resampler.add(self.picker(block))

    def take(self) -> list[np.ndarray]:
        """What is ready by now, as `finish` gives it; it is not given again."""
        return _planes(self._resampler.take())

    def finish(self) -> list[np.ndarray]:
        """The rest: one contiguous (frames,) array an output channel."""
        return _planes(self._resampler.finish())


def _planes(samples: np.ndarray) -> list[np.ndarray]:
    return [np.ascontiguousarray(samples[:, c]) for c in range(samples.shape[1])]


def read_waveforms(
    utterance: Utterance,
    sample_rate: int,
    channel: Channel = "mix",
    *,
    allow_pipes: bool = False,
    cancel: threading.Event | None = None,
) -> list[tuple[Utterance, Waveform]]:
    """The waveform of `utterance`, or one a channel when it is split.

    Args:
        utterance: its own `channel`, when set, overrides `channel`.
        sample_rate: Hz to resample to.
        channel: "mix", "split" or a channel number from 0 on.
        allow_pipes: run the shell command of a row that has one.
        cancel: gives up (ReadCancelledError) once set.

    Raises:
        AudioError: the recording cannot be read or lacks the channel.
    """
    policy = channel_policy(utterance, channel)

    def run(chosen: Channel) -> Reading[MonoSink]:
        def open_sink(rate: int, channels: int) -> MonoSink:
            return MonoSink(chosen, rate, channels, sample_rate)

        return decode(source, open_sink)

    with Source(utterance, allow_pipes, cancel) as source:
        reading = run(policy)
        warnings = reading.warnings
        loudest = reading.sink.picker.loudest_if_cancelled()
        if loudest is not None:
            # Read a second time, which is rare; to hold every channel until the end would burden all others.
            reading = run(loudest)
            warnings += (cancelled_warning(loudest),)
    duration_s = reading.frames / reading.sample_rate
    outputs = reading.sink.finish()
    rows = split_rows(utterance, len(outputs)) if policy == "split" else [utterance]
    return [
        (row, Waveform(x, sample_rate, duration_s, warnings)) for row, x in zip(rows, outputs, strict=True)
    ]


def channel_policy(utterance: Utterance, channel: Channel) -> Channel:
    """What is done with the channels of `utterance`: what it says itself, else `channel`.

    Raises:
        AudioError: it says nothing that could be done.
    """
    try:
        return parse_channel(channel if utterance.channel is None else utterance.channel)
    except OptionsError as error:
        raise AudioError(str(error)) from None


def cancelled_warning(loudest: int) -> str:
    """The warning of a row whose mix was silent."""
    return f"the channels cancel each other when mixed; channel {loudest}, the loudest, is used alone"
