"""Word and character error rates on jiwer: per row, pooled, and by language.

The rate is (S + D + I) / N in percent, N being the reference units (Morris et al. 2004). An empty
reference makes every hypothesis unit an insertion and adds nothing to N, as NIST sclite counts it. When
all references are empty the rate is undefined and reported as null, never as 0 or infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oasr.errors import OptionsError
from oasr.scoring.normalize import NORMALIZERS, base_language, metric_name, normalizer_name

METRICS = ("wer", "cer")


@dataclass(frozen=True, slots=True)
class Score:
    """Error counts of one row, or of many rows added up.

    Attributes:
        ref_units: words (`wer`) or characters without spaces (`cer`) of the normalised reference.
        metric: "wer" or "cer".
        normalizer: name of the normaliser; several names joined by "+" after adding.
        rows: rows counted.
    """

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    ref_units: int = 0
    metric: str = "wer"
    normalizer: str = "basic"
    rows: int = 1

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions together."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float | None:
        """Errors in percent of the reference units; None when there are no reference units."""
        return 100.0 * self.errors / self.ref_units if self.ref_units else None

    def __add__(self, other: Score) -> Score:
        """The pooled counts.

        Raises:
            ValueError: one score counts words and the other characters.
        """
        if not isinstance(other, Score):
            return NotImplemented
        if self.metric != other.metric:
            raise ValueError(f"a {self.metric} and a {other.metric} cannot be added: their units differ")
        # What is added may be a sum already.
        names = {*self.normalizer.split("+"), *other.normalizer.split("+")}
        return Score(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.ref_units + other.ref_units,
            self.metric,
            "+".join(sorted(names)),
            self.rows + other.rows,
        )

    def as_row(self) -> dict[str, Any]:
        """What a result row carries: `{"wer": {...}}` or `{"cer": {...}}`, the rate in percent."""
        counts = {
            "rate": None if self.rate is None else round(self.rate, 4),
            "substitutions": self.substitutions,
            "deletions": self.deletions,
            "insertions": self.insertions,
            "reference_units": self.ref_units,
            "normalizer": self.normalizer,
        }
        return {self.metric: counts}

    def describe(self) -> str:
        """One line for people: `WER 4.86 % (S 265, D 29, I 70, N 7469; 341 rows; english)`."""
        counts = f"S {self.substitutions}, D {self.deletions}, I {self.insertions}, N {self.ref_units}"
        rows = f"{self.rows} row{'' if self.rows == 1 else 's'}"
        rate = "undefined: every reference is empty" if self.rate is None else f"{self.rate:.2f} %"
        return f"{self.metric.upper()} {rate} ({counts}; {rows}; {self.normalizer})"


@dataclass(frozen=True, slots=True)
class Rules:
    """What is done to texts before they are compared, and what is counted.

    Attributes:
        normalizer: a name of `NORMALIZERS`.
        metric: "wer" counts words, "cer" characters without white space.
    """

    normalizer: str = "basic"
    metric: str = "wer"

    def __post_init__(self) -> None:
        """Raise OptionsError for an unknown normaliser or metric."""
        NORMALIZERS.get(self.normalizer)
        if self.metric not in METRICS:
            raise OptionsError(f"metric: expected {' or '.join(METRICS)}, got {self.metric!r}")

    @classmethod
    def of(cls, language: str | None, normalizer: str | None = None, metric: str | None = None) -> Rules:
        """The rules of a language, except for what is given."""
        return cls(normalizer or normalizer_name(language), metric or metric_name(language))

    def units(self, text: str) -> list[str]:
        """The words or characters of the normalised text."""
        words = NORMALIZERS.get(self.normalizer)(text).split()
        return words if self.metric == "wer" else list("".join(words))

    def score(self, reference: str, hypothesis: str) -> Score:
        """Align one transcript with its reference; either may be empty."""
        expected = self.units(reference)
        errors = count_errors(expected, self.units(hypothesis))
        return Score(*errors, len(expected), self.metric, self.normalizer)


def score_row(
    reference: str, hypothesis: str, language: str | None = None, normalizer: str | None = None
) -> Score:
    """Align one transcript with its reference, by the rules of its language.

    Raises:
        OptionsError: an unknown normaliser.
    """
    return Rules.of(language, normalizer).score(reference, hypothesis)


def count_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[int, int, int]:
    """(substitutions, deletions, insertions) of one smallest alignment of two lists of units.

    A unit holds no white space. The sum is the edit distance; how it splits into the three kinds is
    jiwer's choice among the equally short alignments.
    """
    import jiwer

    found = jiwer.process_words([" ".join(reference)], [" ".join(hypothesis)])
    return found.substitutions, found.deletions, found.insertions


class Scorer:
    """Adds up the scores of a run by language and metric.

    Rows without a hypothesis (failed) and rows without a reference are counted and left out of the
    rates; `lines` says how many.
    """

    def __init__(self, normalizer: str | None = None) -> None:
        """`normalizer` is used for all rows; None = by language. An unknown name raises OptionsError."""
        if normalizer is not None:
            NORMALIZERS.get(normalizer)
        self._normalizer = normalizer
        self._scores: dict[tuple[str, str], Score] = {}
        self.failed = 0
        self.without_reference = 0

    def add(self, reference: str | None, hypothesis: str | None, language: str | None = None) -> Score | None:
        """Score one row and count it; None when there is nothing to compare."""
        if reference is None:
            self.without_reference += 1
            return None
        if hypothesis is None:
            self.failed += 1
            return None
        score = score_row(reference, hypothesis, language, self._normalizer)
        key = (score.metric, base_language(language) or "unknown")
        known = self._scores.get(key)
        self._scores[key] = score if known is None else known + score
        return score

    def by_language(self) -> dict[tuple[str, str], Score]:
        """(metric, language) → pooled score, in that order."""
        return {key: self._scores[key] for key in sorted(self._scores)}

    def totals(self) -> dict[str, Score]:
        """Metric → score pooled over its languages: errors over reference units, not a mean of rates."""
        pooled: dict[str, Score] = {}
        for (metric, _), score in self.by_language().items():
            pooled[metric] = pooled[metric] + score if metric in pooled else score
        # "wer" before "cer".
        return dict(sorted(pooled.items(), reverse=True))

    def lines(self) -> list[str]:
        """For people: a line a metric, a line a language if there are several, and what was left out."""
        lines = []
        for metric, total in self.totals().items():
            lines.append(total.describe())
            languages = {key: score for key, score in self.by_language().items() if key[0] == metric}
            if len(languages) > 1:
                lines += [f"  {language}: {score.describe()}" for (_, language), score in languages.items()]
        left_out = [
            f"{count} {what}"
            for count, what in ((self.failed, "failed"), (self.without_reference, "without a reference"))
            if count
        ]
        if left_out:
            lines.append(f"not scored: {', '.join(left_out)}")
        return lines or ["nothing to score"]

    def as_dict(self) -> dict[str, Any]:
        """The same for machines: totals, `languages` (one entry each) and the counts left out."""
        result: dict[str, Any] = {}
        for score in self.totals().values():
            result |= score.as_row()
        result["languages"] = {
            language: score.as_row() | {"rows": score.rows}
            for (_, language), score in self.by_language().items()
        }
        return result | {"failed": self.failed, "without_reference": self.without_reference}
