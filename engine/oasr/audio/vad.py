"""Where somebody speaks: the seam for voice activity detectors, and the rule from scores to regions.

A detector is one file with a class that follows `SpeechScorer` and one line in `DETECTORS`, or an installed
package with an entry point in the group `oasr.vad`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oasr.registry import Registry

ENTER, LEAVE = 0.3, 0.15
"""A region begins at the first score and lasts while there is the second. That is lower than detectors
suggest for themselves: a region too many costs little, a whisper that is left out is lost."""
MIN_SPEECH_S = 0.1
"""A short word by itself (a spoken `six`) may rise above the noise for little longer."""
MIN_SILENCE_S = 0.3
"""A shorter pause does not part two regions, as in the NIST Rich Transcription evaluations."""


class SpeechScorer(Protocol):
    """Scores one recording, whose samples come piece by piece. What it says may not depend on the pieces.

    Attributes:
        hop: samples of the recording that one score stands for.
    """

    hop: int

    def add(self, samples: np.ndarray) -> np.ndarray:
        """Take (n,) float32 samples; scores in [0, 1] of the frames that are decided by now, in order."""
        ...

    def finish(self) -> np.ndarray:
        """The scores of all frames that are left; a last frame that is not full counts as one."""
        ...


ScorerFactory = Callable[[int], SpeechScorer]
"""Sample rate in Hz → SpeechScorer of one recording; OptionsError where that detector cannot work."""

DETECTORS: Registry[ScorerFactory] = Registry(
    "voice activity detector",
    "oasr.vad",
    {
        "energy": "oasr.audio.vad_energy:EnergyScorer",
        "silero": "oasr.audio.vad_silero:SileroScorer",
    },
)


@dataclass(slots=True)
class Region:
    """Speech in samples [start, end) of the recording."""

    start: int
    end: int


class RegionTracker:
    """Scores → regions of speech, as they become certain.

    A region begins with a score of at least ENTER, goes on while there is one of at least LEAVE every
    MIN_SILENCE_S, and ends behind the last of those. Regions shorter than MIN_SPEECH_S are clicks.

    Attributes:
        closed: regions that are over and that nobody has taken out yet.
    """

    def __init__(self, hop: int, sample_rate: int) -> None:
        """`hop` samples a score; rate in Hz."""
        self.closed: deque[Region] = deque()
        self._hop = hop
        self._least = max(1, round(MIN_SPEECH_S * sample_rate / hop))
        self._silence = max(1, round(MIN_SILENCE_S * sample_rate / hop))
        self._frame = 0
        self._start: int | None = None
        self._last = 0

    def add(self, scores: np.ndarray) -> list[Region]:
        """Take the next scores; the regions that ended in them."""
        before = len(self.closed)
        for score in scores.tolist():
            if self._start is None:
                if score >= ENTER:
                    self._start = self._last = self._frame
            elif score >= LEAVE:
                self._last = self._frame
            elif self._frame - self._last >= self._silence:
                self._close()
            self._frame += 1
        return [self.closed[i] for i in range(before, len(self.closed))]

    def finish(self, samples: int) -> list[Region]:
        """No more scores: end what is open, in a recording of `samples` samples."""
        before = len(self.closed)
        if self._start is not None:
            self._close()
        if self.closed:
            # The last frame may have been filled up.
            self.closed[-1].end = min(self.closed[-1].end, samples)
        return [self.closed[i] for i in range(before, len(self.closed))]

    @property
    def open(self) -> Region | None:
        """The region that is not over, as far as it is known; None before it is long enough to be one."""
        if self._start is None or self._last + 1 - self._start < self._least:
            return None
        return Region(self._start * self._hop, (self._last + 1) * self._hop)

    @property
    def settled(self) -> int:
        """Sample before which no region can begin any more, but for those that are there."""
        return (self._frame if self._start is None else self._start) * self._hop

    def _close(self) -> None:
        start = self._start or 0
        if self._last + 1 - start >= self._least:
            self.closed.append(Region(start * self._hop, (self._last + 1) * self._hop))
        self._start = None
