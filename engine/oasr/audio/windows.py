"""From the samples of one recording to the windows that are decoded, while it is still being read.

`pauses` decodes everything and cuts where the speaker pauses (`audio.segment`), `none` takes a recording
whole or refuses it, and with a detector only speech is decoded (`audio.speech_windows`). Where a cut finds no
pause, the two windows share some seconds around it (`audio.cutting`), so that each word near the cut is heard
whole in one of them; `executor.overlap` joins their texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oasr.audio.cutting import AudioWindow, Cutter, Tail
from oasr.audio.speech_windows import SpeechPlanner
from oasr.audio.vad import DETECTORS, Region, SpeechScorer
from oasr.errors import OptionsError, RequestError

PAUSES, WHOLE = "pauses", "none"
# More samples than any recording has, so that no planner gets there.
_ENDLESS = 1 << 60


class WindowPlanner(Protocol):
    """Cuts one recording, whose samples come piece by piece. What it finds may not depend on the pieces."""

    def add(self, samples: np.ndarray) -> list[AudioWindow]:
        """Take (n,) float32 samples; the windows that are certain by now, in order.

        Raises:
            RequestError: the recording is longer than may be.
        """
        ...

    def finish(self) -> list[AudioWindow]:
        """The windows that are left."""
        ...

    @property
    def speech(self) -> list[Region] | None:
        """The regions of speech so far, in order; None when nobody looked for them."""
        ...


@dataclass(frozen=True, slots=True)
class Planning:
    """How recordings become windows.

    Attributes:
        vad: "pauses", "none", or the name of a detector (`audio.vad.DETECTORS`).
        limit_s: longest window in seconds; None = as long as the recording.
    """

    vad: str = PAUSES
    limit_s: float | None = None

    def check(self) -> None:
        """Raise OptionsError when there is no such detector."""
        if self.vad not in (PAUSES, WHOLE):
            self._detector()

    def planner(self, sample_rate: int) -> WindowPlanner:
        """The planner of one recording at `sample_rate` Hz.

        Raises:
            OptionsError: an unknown detector, one that cannot work here, or a limit shorter than one sample.
        """
        limit = _ENDLESS if self.limit_s is None else int(self.limit_s * sample_rate)
        if limit < 1:
            raise OptionsError(
                f"max_window_s: expected at least one sample at {sample_rate} Hz, got {self.limit_s!r} s"
            )
        if self.vad == PAUSES:
            return PausePlanner(sample_rate, limit)
        if self.vad == WHOLE:
            return WholePlanner(sample_rate, limit)
        return SpeechPlanner(self._detector()(sample_rate), sample_rate, limit)

    def _detector(self) -> Callable[[int], SpeechScorer]:
        names = DETECTORS.names()
        if self.vad not in names:
            raise OptionsError(f"vad: expected {', '.join((PAUSES, *names, WHOLE))}, got {self.vad!r}")
        return DETECTORS.get(self.vad)


class PausePlanner:
    """Covers the recording, cut at its pauses."""

    speech = None

    def __init__(self, sample_rate: int, limit: int) -> None:
        """Rate in Hz, limit in samples."""
        self._tail = Tail()
        self._cutter = Cutter(self._tail, sample_rate, limit)

    def add(self, samples: np.ndarray) -> list[AudioWindow]:
        """See WindowPlanner."""
        tail, cutter = self._tail, self._cutter
        tail.add(samples)
        found = []
        # Only cuts that no sample behind them can move, so that pieces change nothing.
        while tail.end - cutter.start >= cutter.sight:
            found.append(cutter.cut(tail.end))
        tail.drop_before(cutter.start - cutter.context)
        return found

    def finish(self) -> list[AudioWindow]:
        """See WindowPlanner."""
        tail, cutter = self._tail, self._cutter
        found = []
        while tail.end - cutter.start > cutter.limit:
            found.append(cutter.cut(tail.end))
        return [*found, cutter.window(tail.end)] if cutter.start < tail.end else found


class WholePlanner:
    """One window, or none at all."""

    speech = None

    def __init__(self, sample_rate: int, limit: int) -> None:
        """Rate in Hz, limit in samples."""
        self._tail = Tail()
        self._rate, self._limit = sample_rate, limit

    def add(self, samples: np.ndarray) -> list[AudioWindow]:
        """See WindowPlanner; RequestError beyond the limit."""
        self._tail.add(samples)
        # Said at once: the rest of an hour need not be read to refuse it.
        if self._tail.end > self._limit:
            raise RequestError(
                f"the recording lasts {self._tail.end / self._rate:.1f} s or longer, a window at most "
                f"{self._limit / self._rate:g} s and --vad none cuts nothing: choose pauses or a detector"
            )
        return []

    def finish(self) -> list[AudioWindow]:
        """See WindowPlanner."""
        return [AudioWindow(0, self._tail.slice(0, self._tail.end))]
