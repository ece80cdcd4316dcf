"""Windows that hold the speech that a detector finds, and little else.

A window takes in one region after the other as long as the limit allows, and ends

1. where the pause behind a region is LONG_PAUSE_S or longer, since nothing is gained by decoding it;
2. else, when the next region does not fit, at the longest pause in the last third of the limit, or, where
   there is none, at the longest one before;
3. inside a region that is longer than the limit, where `--vad pauses` would cut.
"""

from __future__ import annotations

import numpy as np

from oasr.audio.cutting import AudioWindow, Cutter, Tail
from oasr.audio.vad import Region, RegionTracker, SpeechScorer

LONG_PAUSE_S = 4.0
PAD_S = 0.4
"""What a window keeps of the pause in front of its first region and behind its last: half of it at most."""


class SpeechPlanner:
    """Covers the speech that a detector finds."""

    def __init__(self, scorer: SpeechScorer, sample_rate: int, limit: int) -> None:
        """`scorer` has heard nothing yet; rate in Hz, limit in samples."""
        self.speech: list[Region] = []
        self._scorer = scorer
        self._tracker = RegionTracker(scorer.hop, sample_rate)
        self._tail = Tail()
        self._cutter = Cutter(self._tail, sample_rate, limit)
        self._pad, self._long = round(PAD_S * sample_rate), round(LONG_PAUSE_S * sample_rate)
        self._inside = False  # the first region has lost its beginning to a window already
        # Two pads before the recording, so that its first window keeps a whole one.
        self._free_from = -2 * self._pad  # end of the last region that is in a window

    def add(self, samples: np.ndarray) -> list[AudioWindow]:
        """See WindowPlanner."""
        self._tail.add(samples)
        self._note(self._tracker.add(self._scorer.add(samples)))
        return self._windows(final=False)

    def finish(self) -> list[AudioWindow]:
        """See WindowPlanner."""
        self._note(self._tracker.add(self._scorer.finish()))
        self._note(self._tracker.finish(self._tail.end))
        return self._windows(final=True)

    def _note(self, regions: list[Region]) -> None:
        self.speech += [Region(region.start, region.end) for region in regions]

    def _windows(self, final: bool) -> list[AudioWindow]:
        found = []
        while (window := self._next(final)) is not None:
            found.append(window)
        # A window begins up to a pad before what waits, and its cut looks back from there.
        waiting = [self._cutter.start] if self._inside else [r.start for r in self._regions()[:1]]
        needed = min([*waiting, self._tracker.settled]) - self._pad - self._cutter.context
        self._tail.drop_before(needed)
        return found

    def _regions(self) -> list[Region]:
        """What has to go into windows, the region that is not over last."""
        going_on = self._tracker.open
        return [*self._tracker.closed, *([] if going_on is None else [going_on])]

    def _next(self, final: bool) -> AudioWindow | None:
        """The next window; None when more has to be heard first, or nothing is left."""
        regions = self._regions()
        if regions and not self._inside:
            self._cutter.begin(self._begin_of(regions[0]))
        over = len(self._tracker.closed)
        for i, region in enumerate(regions):
            if region.end - self._cutter.start > self._cutter.limit:
                return self._at_a_pause(regions, i) if i else self._within(region, over > 0)
            # It goes on: what it becomes decides where the window ends.
            if i >= over:
                return None
            last = i + 1 == len(regions)
            follows = self._tracker.settled if last else regions[i + 1].start
            # Nothing follows: what is said to lie two pads on leaves the window a whole one.
            if last and final:
                return self._behind(i, region.end + 2 * self._pad)
            if follows - region.end >= self._long:
                return self._behind(i, follows)
        return None

    def _begin_of(self, region: Region) -> int:
        """Where a window begins whose first region is `region`."""
        lead = min(self._pad, (region.start - self._free_from) // 2)
        room = self._cutter.limit - (region.end - region.start)
        if 0 <= room < self._pad:
            lead = min(lead, room // 2)  # rather less of the pause than two windows for one region
        return max(0, region.start - lead)

    def _at_a_pause(self, regions: list[Region], count: int) -> AudioWindow:
        """A window of the first regions of `regions`, `count` of them at most."""
        from_here = self._cutter.start + 2 * self._cutter.limit / 3
        late = [k for k in range(count) if regions[k].end >= from_here]
        k = max(late or range(count), key=lambda k: regions[k + 1].start - regions[k].end)
        return self._behind(k, regions[k + 1].start)

    def _behind(self, k: int, follows: int) -> AudioWindow:
        """A window that ends behind region `k`, the next one beginning at `follows`."""
        end = self._tracker.closed[k].end
        room = self._cutter.start + self._cutter.limit - end
        window = self._cutter.window(min(end + min(self._pad, (follows - end) // 2, room), self._tail.end))
        for _ in range(k + 1):
            self._tracker.closed.popleft()
        self._inside, self._free_from = False, end
        return window

    def _within(self, region: Region, over: bool) -> AudioWindow | None:
        """A window that ends inside `region`, the first one; None when it has to be heard further."""
        if not over and region.end - self._cutter.start < self._cutter.sight:
            return None
        self._inside = True
        return self._cutter.cut(region.end)
