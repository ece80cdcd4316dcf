"""What the header of a recording says, read by the decoders of a run, without decoding it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from oasr.audio.channels import ChannelPicker
from oasr.audio.ffmpeg import FfmpegStream
from oasr.audio.sndfile import SndfileStream
from oasr.audio.source import open_source
from oasr.audio.streams import UnreadableError
from oasr.audio.stretch import Stretch
from oasr.audio.waveform import channel_policy
from oasr.errors import AudioError
from oasr.types import Utterance


@dataclass(frozen=True, slots=True)
class Probe:
    """A recording and the stretch of it that a row names.

    Attributes:
        container: the container as the decoder calls it, such as "WAV" or "matroska,webm".
        sample_rate: Hz.
        channels: how many.
        duration_s: seconds of the stretch; None when the header does not tell.
    """

    container: str
    sample_rate: int
    channels: int
    duration_s: float | None


def probe(utterance: Utterance, channel: int | str = "mix") -> Probe:
    """Look at the recording of `utterance`; no command is run.

    Args:
        utterance: a row with a path.
        channel: the policy of the run, for rows that do not say.

    Raises:
        AudioError: it could not be transcribed, as far as its header shows.
    """
    if not utterance.audio:
        raise AudioError("the audio comes from a command, which is only run by the run itself")
    try:
        stretch = Stretch.of(utterance)
        with open_source(utterance, allow_pipes=False, cancel=None) as file:
            stream, container = _open(file)
            try:
                # Made for its check alone: the recording may lack the channel.
                ChannelPicker(channel_policy(utterance, channel), stream.channels)
                return _measured(stretch, container, stream)
            finally:
                stream.close()
    except AudioError as error:
        raise AudioError(f"{utterance.audio}: {error}") from error


def _open(file: IO[bytes]) -> tuple[SndfileStream | FfmpegStream, str]:
    reason, empty = "", False
    for decoder in (SndfileStream, FfmpegStream):
        file.seek(0)
        try:
            stream: SndfileStream | FfmpegStream = decoder(file)
        except UnreadableError as error:
            reason = str(error)
            continue
        if isinstance(stream, SndfileStream):
            # A writer that streams, or died, leaves a size of 0; FFmpeg reads such a file to its end.
            if stream.total == 0:
                stream.close()
                empty = True
                continue
            return stream, str(stream._file.format)
        return stream, str(stream._container.format.name)
    if empty:
        raise AudioError(Stretch().absent(None))
    raise AudioError(f"not a recording that can be decoded: {reason}")


def _measured(stretch: Stretch, container: str, stream: SndfileStream | FfmpegStream) -> Probe:
    rate, total = stream.sample_rate, stream.total
    first, last = stretch.frames(rate)
    if total is not None:
        last = total if last is None else min(last, total)
        if last <= first:
            raise AudioError(stretch.absent(total / rate))
    return Probe(container, rate, stream.channels, None if last is None else (last - first) / rate)
