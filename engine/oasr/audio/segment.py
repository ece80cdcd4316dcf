"""Where audio that is longer than a model's window is cut, and what holds no speech at all."""

from __future__ import annotations

import numpy as np

from oasr.errors import OptionsError
from oasr.native import extension

HALF_STEP_16_BIT = 0.5 / 32768
SHORTEST_SPEECH_S = 0.025


LEVEL_REACH_S = 0.2
"""How far around a point its level looks (include/oasr/segmentation.h)."""


def plan_windows(samples: np.ndarray, sample_rate: int, max_window_s: float) -> list[tuple[int, int]]:
    """Ranges that cover `samples` exactly once, cut where the speaker pauses.

    The rule is written down in include/oasr/segmentation.h.

    Args:
        samples: (frames,) float32, full scale 1.
        sample_rate: Hz.
        max_window_s: longest window in seconds; audio that fits gives one range, empty audio none.

    Returns:
        Contiguous half-open ranges. A cut falls into the middle of the longest quiet run in the last third
        of a window (ties: the earlier run); the last two windows share what is left, so none is shorter
        than a quarter of the limit.

    Raises:
        OptionsError: a window shorter than one sample.
        OasrError: the compiled extension is missing.
    """
    limit = max_window_s * sample_rate
    if not limit >= 1:
        raise OptionsError(
            f"max_window_s: expected at least one sample at {sample_rate} Hz, got {max_window_s!r} s"
        )
    # An endless limit has no integer: one sample more than there are cuts as little.
    return extension().segmentation.plan_windows(samples, sample_rate, int(min(limit, len(samples) + 1)))


def next_cut(samples: np.ndarray, start: int, sample_rate: int, limit: int) -> tuple[int, bool]:
    """The first cut of `plan_windows` behind sample `start`, and whether the speaker pauses there.

    `samples` needs to hold LEVEL_REACH_S in front of `start` and `sight` samples behind it, or all there are;
    more change nothing.

    Args:
        samples: (frames,) float32, full scale 1.
        start: where the window begins; more than `limit` samples follow.
        sample_rate: Hz.
        limit: most samples of a window.
    """
    return extension().segmentation.next_cut(samples, start, sample_rate, limit)


def sight(limit: int, sample_rate: int) -> int:
    """Samples behind the start of a window that decide where it is cut, however much follows them."""
    # With up to 5/3 of the limit left, the last two windows share it (csrc/segmentation.cc). With more, a cut
    # lies within the limit, and its level looks LEVEL_REACH_S further.
    return max(5 * limit // 3 + 1, limit + round(LEVEL_REACH_S * sample_rate) + 1)


def holds_no_speech(samples: np.ndarray, sample_rate: int) -> bool:
    """True for (frames,) float32 `samples` that are digital silence or shorter than an analysis window.

    No sample reaches half a step of 16-bit audio, or there are 25 ms at most: nothing can be said in
    such a window, and models trained on speech tend to write something for it all the same; it is
    not decoded.
    """
    if len(samples) <= SHORTEST_SPEECH_S * sample_rate:
        return True
    return not bool((np.abs(samples) >= HALF_STEP_16_BIT).any())
