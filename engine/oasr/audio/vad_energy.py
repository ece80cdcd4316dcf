"""`--vad energy`: speech is what stands out of the noise around it. No package and no weights are needed.

The rule, per frame of 20 ms:

1. its level is the power in dB (full scale = 0) behind the filter x[n] - 0.97 x[n-1], which takes out hum and
   offset, not below FLOOR_DB;
2. the noise floor is the 10th percentile of the levels within 15 s on either side, the peak their 95th: it
   follows a noise that comes or goes within seconds, and a sentence does not lift it, since speech pauses
   between its syllables; both are taken anew every second;
3. the threshold lies 35 % of the way from floor to peak, but 6 dB above the floor at least and 12 dB at most:
   steady noise, however loud, never reaches it;
4. the score is ENTER at the threshold and falls to LEAVE within 4 dB, so that a region lasts until the level
   is 4 dB below the threshold.

Music and noise that swells are speech to it. It is made to lose no speech rather than to find all silence.
"""

from __future__ import annotations

import numpy as np

from oasr.audio.vad import ENTER, LEAVE

FRAME_S = 0.02
FLOOR_DB = -75.0
_EMPHASIS = np.float32(0.97)
_STEP, _SIDE = 50, 750
"""Frames that share a threshold, and frames on either side of them that decide it."""
_NOISE, _PEAK = 10, 95
_SHARE, _LEAST_DB, _MOST_DB = 0.35, 6.0, 12.0
_SCORE_PER_DB = (ENTER - LEAVE) / 4


class EnergyScorer:
    """SpeechScorer over the level of the signal."""

    def __init__(self, sample_rate: int) -> None:
        """Any rate, in Hz."""
        self.hop = max(1, round(FRAME_S * sample_rate))
        self._rest = np.zeros(0, np.float32)
        self._before = np.float32(0)
        self._levels = np.zeros(0)
        self._first = 0  # frame that self._levels begins with
        self._scored = 0

    def add(self, samples: np.ndarray) -> np.ndarray:
        """See SpeechScorer; a frame is decided once the 16 s behind it are there."""
        samples = np.concatenate([self._rest, samples])
        whole = len(samples) // self.hop * self.hop
        self._measure(samples[:whole])
        self._rest = samples[whole:]
        return self._score(len(self._levels) + self._first - _SIDE)

    def finish(self) -> np.ndarray:
        """See SpeechScorer."""
        if len(self._rest):
            self._measure(np.pad(self._rest, (0, self.hop - len(self._rest))))
            self._rest = self._rest[:0]
        return self._score(None)

    def _measure(self, samples: np.ndarray) -> None:
        """Append the levels of whole frames."""
        if not len(samples):
            return
        filtered = samples.copy()
        filtered[1:] -= _EMPHASIS * samples[:-1]
        filtered[0] -= _EMPHASIS * self._before
        self._before = samples[-1]
        frames = filtered.reshape(-1, self.hop)
        power = np.einsum("fn,fn->f", frames, frames, dtype=np.float64) / self.hop
        levels = 10 * np.log10(np.maximum(power, 10 ** (FLOOR_DB / 10)))
        self._levels = np.concatenate([self._levels, levels])

    def _score(self, until: int | None) -> np.ndarray:
        """Scores of the whole steps before frame `until`; None = of everything."""
        end = self._first + len(self._levels)
        found = [np.zeros(0)]
        while self._scored < end if until is None else self._scored + _STEP <= until:
            step = slice(self._scored - self._first, min(self._scored + _STEP, end) - self._first)
            around = self._levels[max(0, step.start - _SIDE) : step.stop + _SIDE]
            floor, peak = np.percentile(around, (_NOISE, _PEAK))
            threshold = floor + np.clip(_SHARE * (peak - floor), _LEAST_DB, _MOST_DB)
            found.append(np.clip(ENTER + (self._levels[step] - threshold) * _SCORE_PER_DB, 0, 1))
            self._scored += len(found[-1])
        # The next step looks _SIDE frames back.
        surplus = self._scored - _SIDE - self._first
        if surplus > 0:
            self._levels = self._levels[surplus:]
            self._first += surplus
        return np.concatenate(found)
