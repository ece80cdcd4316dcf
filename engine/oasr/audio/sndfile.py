"""WAV, FLAC, Ogg, AIFF and whatever else libsndfile knows, by content.

MP3 is left to FFmpeg: the decoder inside libsndfile writes its complaints to standard error, which belongs
to the command line, and gives up a damaged file at the first bad frame.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from io import FileIO
from typing import IO

import numpy as np
import soundfile

from oasr.audio.streams import BLOCK_FRAMES, UnreadableError

_SIZE_LINE = re.compile(
    r"^\s*(?:data|SSND|Data Size|Riff size|riff)\s*:\s*(\d+) \(should be (\d+)\)", re.MULTILINE
)
"""How libsndfile's log states a body (in RF64 and W64: a file) that is smaller than its header promises."""
_NO_OGG_END = "lacks an end-of-stream bit"
_STREAMED = 0x7FFF0000
"""Writers into a pipe cannot know the size and put the greatest one they dare into the header."""
# libsndfile gives SF_COUNT_MAX, 2^63 - 1, for the frames of a stream that does not tell its length.
_UNKNOWN = 1 << 62
_OGG_PAGE = struct.Struct("<4sBBqIIIB")
_CHUNK = struct.Struct("<4sI")
_MOST_CHUNKS = 1000
# Old programs append tags and padding that are no chunks, and fewer bytes than this are hardly a sound.
_TAIL_BYTES = 1024


class SndfileStream:
    """AudioStream over libsndfile."""

    def __init__(self, file: IO[bytes]) -> None:
        """Open `file`; UnreadableError when libsndfile does not recognise it."""
        if _is_mpeg(file):
            raise UnreadableError("libsndfile: MPEG audio")
        # libsndfile ends with the first link, and says nothing.
        if _is_chained_ogg(file):
            raise UnreadableError("libsndfile: several Ogg streams one after the other")
        unclaimed = _unclaimed(file)
        file.seek(0)
        # A bare descriptor has no name, so that no format is guessed from one, and is read without Python.
        handle = file.fileno() if isinstance(file, FileIO) else file
        try:
            self._file = soundfile.SoundFile(handle, closefd=False)
        except Exception as error:
            raise UnreadableError(f"libsndfile: {error}") from None
        if self._file.subtype.startswith("MPEG"):
            self._file.close()
            raise UnreadableError("libsndfile: MPEG audio")
        self.sample_rate = int(self._file.samplerate)
        self.channels = int(self._file.channels)
        self.total = self._file.frames if self._file.frames < _UNKNOWN else None
        self.warnings = _cut_short(self._file.extra_info) + unclaimed

    def blocks(self, first: int, last: int | None) -> Iterator[np.ndarray]:
        """See AudioStream; seeking is exact in every format of libsndfile."""
        if self.total is not None and first >= self.total:
            return
        left = last - first if last is not None else _UNKNOWN
        # A header may state 1024 channels: the block has as many samples as one of two channels.
        most = min(BLOCK_FRAMES, max(1, 2 * BLOCK_FRAMES // self.channels))
        try:
            if first:
                self._file.seek(first)
            while left > 0:
                wanted = min(left, most)
                block = self._file.read(wanted, dtype="float32", always_2d=True)
                left -= len(block)
                if len(block):
                    yield block
                # A short block is the end. Behind a hole in an Ogg stream another read would repeat samples.
                if len(block) < wanted:
                    return
        except (soundfile.SoundFileError, RuntimeError, OSError, ValueError) as error:
            self.warnings.append(f"decoding stopped early: {str(error).strip()}")

    def close(self) -> None:
        """Free the decoder."""
        self._file.close()


def _is_mpeg(file: IO[bytes]) -> bool:
    """Whether the first bytes are an ID3 tag or the sync word of an MPEG audio frame."""
    head = file.read(3)
    file.seek(0)
    return head == b"ID3" or (len(head) == 3 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0)


def _is_chained_ogg(file: IO[bytes]) -> bool:
    """Whether an Ogg page that begins a stream follows one that does not; False from the first damage on.

    Streams that lie side by side (sound and picture) all begin before any of them goes on.
    """
    at, going_on = 0, False
    while True:
        file.seek(at)
        page = file.read(_OGG_PAGE.size + 255)
        if len(page) < _OGG_PAGE.size:
            return False
        magic, _, flags, *_, segments = _OGG_PAGE.unpack_from(page)
        if magic != b"OggS":
            return False
        if not flags & 2:
            going_on = True
        elif going_on:
            return True
        lacing = page[_OGG_PAGE.size : _OGG_PAGE.size + segments]
        at += _OGG_PAGE.size + segments + sum(lacing)


def _unclaimed(file: IO[bytes]) -> list[str]:
    """A warning when a WAV file goes on behind its samples with what is no chunk.

    So do recorders end that died before they wrote the last size. A size of 0 is one that was never written;
    FFmpeg reads such files to their end.
    """
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(12)
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        return []
    at = 12
    for _ in range(_MOST_CHUNKS):
        chunk = _chunk(file, at, size)
        if chunk is None:
            return []
        name, length = chunk
        end = at + _CHUNK.size + length
        if name == b"data":
            break
        at = end + length % 2
    else:
        return []
    if not length or size - end < _TAIL_BYTES:
        return []
    # Not every program pads a chunk of an odd size.
    if any(_chunk(file, start, size) for start in {end, end + length % 2}):
        return []
    file.seek(end)
    if not (file.read(1 << 16) or b"").strip(b"\0"):  # room that was set aside
        return []
    return [
        f"the header states {length} bytes of samples; {size - end} bytes that follow, and are no chunk of "
        "their own, are left out"
    ]


def _chunk(file: IO[bytes], at: int, size: int) -> tuple[bytes, int] | None:
    """(name, length) of the chunk at `at` in a file of `size` bytes; None where there is none that fits."""
    file.seek(at)
    head = file.read(_CHUNK.size)
    if len(head) < _CHUNK.size:
        return None
    name, length = _CHUNK.unpack(head)
    printable = all(0x20 <= byte < 0x7F for byte in name)
    return (name, length) if printable and at + _CHUNK.size + length <= size else None


def _cut_short(log: str) -> list[str]:
    """A warning when libsndfile's parse log says that the file ends too early."""
    if _NO_OGG_END in log:
        return ["truncated: the Ogg stream has no end mark"]
    match = _SIZE_LINE.search(log)
    if match is None:
        return []
    promised, found = int(match[1]), int(match[2])
    if promised >= _STREAMED or promised <= found:
        return []
    return [f"truncated: the header promises {promised} bytes, the file holds {found}"]
