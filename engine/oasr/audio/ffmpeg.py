"""mp3, m4a, aac, mp4, webm, amr, wma and everything else that FFmpeg knows, through PyAV."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

import av
import numpy as np

from oasr.audio.streams import BLOCK_FRAMES, UnreadableError
from oasr.audio.stretch import SLACK_S
from oasr.errors import AudioError

_PRE_ROLL_S = 1.0
"""Decoders carry state from packet to packet; this much is decoded and dropped before a stretch."""
# So much is decoded and dropped rather than sought: it costs little and needs no index.
_SEEK_FROM_S = 10.0
_PLANES = 7
# Containers round their timestamps (Matroska to a millisecond), so a smaller jump need not be a hole. Holes
# that are smaller add up until they are seen.
_GAP_S = 0.05
# A longer jump is believed only within the length that the container states; else a timestamp is damaged.
_LONGEST_GAP_S = 60.0
_MOST_SILENCE_S = 3600.0
_ERRORS = (av.FFmpegError, OSError, ValueError)
_OPTIONS = {"protocol_whitelist": "data"}
"""A playlist must not make the reader open other files or the network."""


class FfmpegStream:
    """AudioStream over PyAV.

    Frames are counted from the first one that decodes; where the timestamps jump ahead (lost packets)
    silence is put in, so that the times of what follows stay right. A stretch is reached by seeking in mp4
    and Matroska, which have an index, and elsewhere by passing over packets without decoding them.
    """

    def __init__(self, file: IO[bytes]) -> None:
        """Open `file` and decode its first frame; UnreadableError when there is none."""
        self._file = file
        self.warnings: list[str] = []
        self._lost = 0
        self._gaps: list[tuple[float, float]] = []
        self._container: Any = None
        try:
            self._open()
            self._decoded = self._frames()
            self._ahead: Any = next(self._decoded, None)
        except UnreadableError:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise UnreadableError(f"FFmpeg: {_reason(self._reader.error or error)}") from None
        if self._ahead is None:
            self.close()
            reason = self._reader.error and _reason(self._reader.error)
            raise UnreadableError(f"FFmpeg: {reason or 'a container without any audio that decodes'}")
        self.sample_rate = int(self._ahead.sample_rate)
        self.channels = len(self._ahead.layout.channels)
        self._origin: int | None = self._ahead.pts
        base = self._stream.time_base
        self._ticks = (base.numerator * self.sample_rate, base.denominator)
        self._convert = _Converter(self._ahead)
        self.total = self._promised()
        self._report_tracks()

    def blocks(self, first: int, last: int | None) -> Iterator[np.ndarray]:
        """See AudioStream.

        Raises:
            AudioError: the frames end where the file could not be read.
        """
        position, frames = self._start(first)
        parts: list[np.ndarray] = []
        held = 0
        for part in self._parts(position, frames):
            begin, end = max(first - position, 0), part.shape[1]
            if last is not None:
                end = min(last - position, end)
            position += part.shape[1]
            if begin < end:
                parts.append(part[:, begin:end])
                held += end - begin
            if held >= BLOCK_FRAMES:
                yield np.concatenate(parts, axis=1).T
                parts, held = [], 0
            if last is not None and position >= last:
                break
        else:
            if self._reader.error is not None:
                at_s = position / self.sample_rate
                raise AudioError(f"reading broke off at {at_s:.2f} s: {_reason(self._reader.error)}")
            self.total = self.total or position
        if held:
            yield np.concatenate(parts, axis=1).T
        self._report()

    def close(self) -> None:
        """Free the decoder."""
        if self._container is not None:
            self._container.close()

    def _open(self) -> None:
        self._reader = _Reader(self._file)
        self._states_length = _mp3_states_length(self._file)
        self._file.seek(0)
        # Tags in an unknown encoding are no reason to refuse the sound.
        self._container = av.open(self._reader, metadata_errors="ignore", options=dict(_OPTIONS))
        streams = self._container.streams
        self._stream: Any = streams.best("audio")
        if self._stream is None:
            found = ", ".join(sorted({s.type for s in streams})) or "no track at all"
            raise UnreadableError(f"no audio track (it holds: {found})")

    def _frames(self, from_pts: int | None = None) -> Iterator[Any]:
        """Decoded frames from where the container stands; a packet that does not decode is counted.

        Packets that begin before `from_pts` are passed over. Where timestamps step back meanwhile there is no
        frame: another recording follows (chained Ogg), and they do not tell the position any more.
        """
        packets = self._container.demux(self._stream)
        passed: int | None = None
        while True:
            try:
                packet = next(packets, None)
                if packet is None:
                    return
                if from_pts is not None and packet.pts is not None:
                    if passed is not None and packet.pts < passed:
                        return
                    if packet.pts < from_pts:
                        passed = packet.pts
                        continue
                    # The packets of a later recording may well lie before it, and are wanted.
                    from_pts = None
                frames = packet.decode()
            # FFmpeg's end of file is one of _ERRORS as well, and no packet that was lost.
            except EOFError:
                return
            except _ERRORS:
                self._lost += 1
                continue
            yield from frames

    def _start(self, first: int) -> tuple[int, Iterator[Any]]:
        """(position of the next frame, frames) such that position <= `first`."""
        if self._origin is None or first < _SEEK_FROM_S * self.sample_rate:
            return 0, chain([self._ahead], self._decoded)
        seconds = first / self.sample_rate - _PRE_ROLL_S
        from_pts = self._origin + int(seconds / self._stream.time_base)
        try:
            if self._container.format.name.startswith(("mov,", "matroska,")):
                self._container.seek(from_pts, stream=self._stream)
                frames = self._frames()
            else:
                frames = self._frames(from_pts)
            frame = next(frames, None)
        except _ERRORS:
            frame = None
        # A seek may land behind what was asked for; the frames between would be missing.
        if frame is not None and frame.pts is not None and self._position(frame.pts) <= first:
            return self._position(frame.pts), chain([frame], frames)
        # No usable index: begin again and decode everything, and count what is lost anew.
        self.close()
        self._open()
        self._lost = 0
        return 0, self._frames()

    def _parts(self, position: int, frames: Iterator[Any]) -> Iterator[np.ndarray]:
        """(channels, n) float32 arrays without holes, from `position` on."""
        for frame in frames:
            gap = self._gap(frame.pts, position)
            position += gap
            for start in range(0, gap, BLOCK_FRAMES):
                yield np.zeros((self.channels, min(gap - start, BLOCK_FRAMES)), np.float32)
            try:
                parts = self._convert(frame)
            except _ERRORS as error:  # FFmpeg converts 64 channels at most
                self.warnings.append(f"decoding stopped early: {_reason(error)}")
                return
            for part in parts:
                position += part.shape[1]
                yield part

    def _report_tracks(self) -> None:
        indices = [track.index for track in self._container.streams.audio]
        if len(indices) > 1:
            number = indices.index(self._stream.index) + 1
            self.warnings.append(f"{len(indices)} audio tracks, only track {number} (counted from 1) is used")

    def _report(self) -> None:
        if self._lost:
            self.warnings.append(f"damaged: {self._lost} packets could not be decoded")
        if self._gaps:
            missing_s = sum(gap_s for _, gap_s in self._gaps)
            self.warnings.append(
                f"{missing_s:.2f} s are missing in {len(self._gaps)} places, the first at "
                f"{self._gaps[0][0]:.2f} s; silence is put there"
            )

    def _position(self, pts: int) -> int:
        # Integers, rounded half up: this runs for every frame of every file.
        scaled = (pts - (self._origin or 0)) * self._ticks[0]
        return (2 * scaled + self._ticks[1]) // (2 * self._ticks[1])

    def _gap(self, pts: int | None, position: int) -> int:
        """Frames of silence that belong between `position` and a frame with timestamp `pts`."""
        if pts is None or self._origin is None:
            return 0
        gap = self._position(pts) - position
        if gap <= _GAP_S * self.sample_rate:
            return 0
        gap_s, at_s = gap / self.sample_rate, position / self.sample_rate
        silence_s = gap_s + sum(earlier_s for _, earlier_s in self._gaps)
        past_end = gap_s > _LONGEST_GAP_S and position + gap > (self.total or 0)
        # The length by the container is no limit either: damage in it would make days of silence.
        if past_end or silence_s > _MOST_SILENCE_S:
            # From here on all timestamps are that much too late, and must not be one gap after the other.
            self._origin += int(gap_s / self._stream.time_base)
            self.warnings.append(f"timestamps jump by {gap_s:.1f} s at {at_s:.2f} s; the jump is left out")
            return 0
        self._gaps.append((at_s, gap_s))
        return gap

    def _promised(self) -> int | None:
        """Frames by the container's own word; None where FFmpeg only guesses from the bit rate."""
        name, stream = self._container.format.name, self._stream
        # A guess would be taken for a promise, and a whole recording for one that was cut off.
        if name == "mp3" and not self._states_length:
            return None
        if name.startswith(("mov,", "mp3", "flac", "wav", "aiff")) and stream.duration:
            return round(stream.duration * stream.time_base * self.sample_rate)
        # Matroska states a length for all tracks together: a film may go on when its sound is over.
        if name.startswith("matroska,") and len(self._container.streams) == 1 and self._container.duration:
            length = self._container.duration / av.time_base
            # The length counts from 0, the frames from the first timestamp. A few milliseconds are the delay
            # of the codec, which does not shorten it.
            late = float((stream.start_time or 0) * stream.time_base)
            return max(0, round((length - (late if late > SLACK_S else 0)) * self.sample_rate))
        return None


class _Reader:
    """A file whose read errors are kept: FFmpeg takes them for the end, or for a packet that is lost."""

    def __init__(self, file: IO[bytes]) -> None:
        self.error: OSError | None = None
        self.seek, self.tell = file.seek, file.tell
        self.name = getattr(file, "name", "")
        self._read = file.read

    def read(self, size: int) -> bytes:
        try:
            return self._read(size)
        except OSError as error:
            self.error = error
            return b""


class _Converter:
    """Frames of any sample format, layout and rate → float32 planes like those of the first frame."""

    def __init__(self, first: Any) -> None:
        self._target = (first.layout, first.sample_rate)
        self._channels = len(first.layout.channels)
        # PyAV looks for the end of a planar frame behind its eighth plane, in memory that is none of its own;
        # a packed frame has a single plane.
        self._format = "fltp" if self._channels <= _PLANES else "flt"
        self._wanted = (self._format, first.layout.name, first.sample_rate)
        self._source = self._wanted
        self._resampler: Any = None

    def __call__(self, frame: Any) -> list[np.ndarray]:
        """(channels, n) float32 arrays, in order."""
        source = (frame.format.name, frame.layout.name, frame.sample_rate)
        parts = []
        if source != self._source:
            # A resampler holds samples back, which belong before those of the new source.
            parts = self._convert(None)
            self._resampler = None
            self._source = source
        if source == self._wanted:
            return [*parts, self._planes(frame)]
        frame.pts = None
        return parts + self._convert(frame)

    def _convert(self, frame: Any) -> list[np.ndarray]:
        """`frame` through the resampler of the current source; None flushes it."""
        if self._resampler is None:
            if frame is None:
                return []
            layout, rate = self._target
            self._resampler = av.AudioResampler(format=self._format, layout=layout, rate=rate)
        return [self._planes(part) for part in self._resampler.resample(frame)]

    def _planes(self, frame: Any) -> np.ndarray:
        samples: np.ndarray = frame.to_ndarray()
        return samples if self._format == "fltp" else samples.reshape(-1, self._channels).T


def _mp3_states_length(file: IO[bytes]) -> bool:
    """Whether the first frame of an MP3 file is a Xing, Info or VBRI header (which counts the frames)."""
    file.seek(0)
    head = file.read(10)
    skip = 0
    if head[:3] == b"ID3" and len(head) == 10:
        # Sizes in ID3 have seven bits a byte, so that they cannot look like the start of an audio frame.
        skip = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))
    file.seek(skip)
    # The header stands behind the side information of the first frame, some 40 bytes into it at most.
    start = file.read(256)
    return any(tag in start for tag in (b"Xing", b"Info", b"VBRI"))


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
