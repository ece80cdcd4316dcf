"""The part of a recording that a row asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from oasr.errors import AudioError
from oasr.types import Utterance

SLACK_S = 0.1
"""Headers and manifests round their durations; a difference up to this many seconds means nothing."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """`offset` and `duration` in seconds; a duration of None reaches to the end."""

    offset: float = 0.0
    duration: float | None = None

    @classmethod
    def of(cls, utterance: Utterance) -> Stretch:
        """The stretch of `utterance`.

        Raises:
            AudioError: a negative or non-finite number, or a duration of zero.
        """
        offset, duration = utterance.offset, utterance.duration
        if not (math.isfinite(offset) and offset >= 0):
            raise AudioError(f"offset: expected seconds >= 0, got {offset!r}")
        if duration is not None and not (math.isfinite(duration) and duration > 0):
            raise AudioError(f"duration: expected seconds > 0 (or none for the rest), got {duration!r}")
        return cls(offset, duration)

    def frames(self, sample_rate: int) -> tuple[int, int | None]:
        """Half-open range of frames. Both ends are rounded, so stretches that touch in time touch in frames.

        A stretch shorter than one frame still takes one.
        """
        first = round(self.offset * sample_rate)
        if self.duration is None:
            return first, None
        return first, max(first + 1, round((self.offset + self.duration) * sample_rate))

    def absent(self, total_s: float | None) -> str:
        """Why a stretch without a single frame has none, in a recording of `total_s` seconds."""
        if not self.offset or not total_s:
            return "expected audio, found a container with no samples"
        return f"offset {self.offset:g} s is past the end: the recording lasts {total_s:.3f} s"

    def shortage(self, sample_rate: int, frames: int) -> str | None:
        """A warning when only `frames` of a longer stretch exist, else None."""
        if self.duration is None or self.duration - frames / sample_rate <= SLACK_S:
            return None
        return (
            f"the row asks for {self.duration:g} s from {self.offset:g} s on, "
            f"the recording has {frames / sample_rate:.3f} s there; these are used"
        )
