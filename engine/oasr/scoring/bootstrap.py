"""How sure an error rate is, and a difference of two: the bootstrap over utterances.

M. Bisani and H. Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP
2004. Utterances are drawn with replacement, as many as there are, and the rate of the draw is computed; many
draws show how the rate would vary over lists like this one. Errors within an utterance depend on each other,
so utterances are drawn and not words. Two systems are compared on the same draws (paired): what is hard for
both cancels out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oasr.errors import OptionsError
from oasr.scoring.wer import Score

if TYPE_CHECKING:
    import numpy as np

Interval = tuple[float, float]
_COVERED = (2.5, 97.5)
_BLOCK = 1 << 20  # indices drawn at once: 8 MiB


@dataclass(frozen=True, slots=True)
class Resampling:
    """How often is drawn, and the seed of the draws; the same seed gives the same figures."""

    draws: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise OptionsError for a number of draws that gives no interval, or a seed that is none."""
        if self.draws < 100:
            raise OptionsError(f"--bootstrap: expected 0, or 100 draws or more, got {self.draws}")
        if self.seed < 0:
            raise OptionsError(f"--seed: expected an integer >= 0, got {self.seed}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The second system against the first, on the same utterances.

    Attributes:
        difference: rate of the second minus rate of the first, in percentage points.
        interval: its 95 % interval.
        improved: share of the draws in which the second is better ("probability of improvement").
        p_value: two-sided; that of no difference. Draws without a difference count for neither system, and
            one draw is added to either side, so that it is never 0 (Davison and Hinkley 1997, section 4.2).
    """

    difference: float
    interval: Interval
    improved: float
    p_value: float


def rate_interval(scores: Sequence[Score], resampling: Resampling) -> Interval | None:
    """95 % interval (percentiles) of the pooled rate, in percent.

    None where it says nothing: fewer than two utterances, or no reference unit.
    """
    rates = _resampled_rates([scores], resampling)
    return None if rates is None else _interval(rates[0])


def compare(first: Sequence[Score], second: Sequence[Score], resampling: Resampling) -> Comparison | None:
    """The paired comparison of two systems whose scores stand in the same order; None as `rate_interval`."""
    import numpy as np

    rates = _resampled_rates([first, second], resampling)
    if rates is None:
        return None
    differences = rates[1] - rates[0]
    draws = len(differences)
    better, worse = int(np.count_nonzero(differences < 0)), int(np.count_nonzero(differences > 0))
    units = sum(score.ref_units for score in first)
    errors = sum(score.errors for score in second) - sum(score.errors for score in first)
    return Comparison(
        difference=100.0 * errors / units,
        interval=_interval(differences),
        improved=better / draws,
        p_value=min(1.0, 2 * (draws - max(better, worse) + 1) / (draws + 1)),
    )


def _resampled_rates(systems: Sequence[Sequence[Score]], resampling: Resampling) -> np.ndarray | None:
    """(systems, draws) rates in percent, float64; a draw without reference units has none and is left out."""
    import numpy as np

    # (systems + 1, utterances): the errors of each system, then the reference units, which all share.
    counts = np.array(
        [[score.errors for score in scores] for scores in systems]
        + [[score.ref_units for score in systems[0]]],
        dtype=np.int64,
    )
    utterances = counts.shape[1]
    if utterances < 2 or not counts[-1].any():
        return None
    # The figures must not depend on the order of the files, so the draws are made over a fixed one.
    counts = counts[:, np.lexsort(counts)]
    rng = np.random.default_rng(resampling.seed)
    rows = max(1, _BLOCK // utterances)
    sums = []
    for start in range(0, resampling.draws, rows):
        size = min(rows, resampling.draws - start), utterances
        sums.append(counts[:, rng.integers(utterances, size=size)].sum(axis=2))
    drawn = np.concatenate(sums, axis=1)
    drawn = drawn[:, drawn[-1] > 0]
    return 100.0 * drawn[:-1] / drawn[-1]


def _interval(values: np.ndarray) -> Interval:
    import numpy as np

    low, high = np.percentile(values, _COVERED)
    return float(low), float(high)
