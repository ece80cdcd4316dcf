"""The scores of one list: every row by its rules, pooled, by group, and the rows that cost most."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from oasr.errors import OptionsError
from oasr.scoring.alignment import Aligned, align
from oasr.scoring.samples import Sample
from oasr.scoring.wer import METRICS, Rules, Score


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """What decides the rules of a row; None = its language."""

    normalizer: str | None = None
    metric: str | None = None
    language: str | None = None

    def __post_init__(self) -> None:
        """Raise OptionsError for an unknown normaliser or metric."""
        Rules.of(self.language, self.normalizer, self.metric)

    def of(self, sample: Sample) -> Rules:
        """The rules by which `sample` is scored."""
        return _rules(self.language or sample.language, self.normalizer, self.metric)


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One row of one system; a failed one counts as all deletions."""

    sample: Sample
    rules: Rules
    hypothesis: str | None
    score: Score

    @property
    def failed(self) -> bool:
        """There is no hypothesis."""
        return self.hypothesis is None

    def alignment(self) -> list[Aligned]:
        """The normalised units side by side."""
        return align(self.rules.units(self.sample.reference), self.rules.units(self.hypothesis or ""))


def score_samples(samples: Iterable[Sample], system: int, choice: RuleChoice) -> list[ScoredRow]:
    """Score the hypotheses of one system (an index into `Sample.hypotheses`), in order.

    Raises:
        OptionsError: an unknown normaliser or metric.
    """
    rows = []
    for sample in samples:
        rules, text = choice.of(sample), sample.hypotheses[system]
        # A recording that failed has no words: a system is not made better by failing on the hard ones.
        rows.append(ScoredRow(sample, rules, text, rules.score(sample.reference, text or "")))
    return rows


def by_metric(rows: Iterable[ScoredRow]) -> dict[str, list[ScoredRow]]:
    """Metric → its rows, for the metrics that occur: words and characters are never added up."""
    found: dict[str, list[ScoredRow]] = {}
    for row in rows:
        found.setdefault(row.score.metric, []).append(row)
    return {metric: found[metric] for metric in METRICS if metric in found}


def pooled(rows: Sequence[ScoredRow]) -> Score:
    """The added-up score of rows of one metric, of which there is at least one."""
    first, *others = (row.score for row in rows)
    return sum(others, first)


def check_keys(samples: Sequence[Sample], keys: Iterable[str]) -> None:
    """Refuse to group by a key that no row has.

    Raises:
        OptionsError: such a key; the message lists those that there are.
    """
    known = sorted({name for sample in samples for name in sample.keys})
    for key in keys:
        if key not in known:
            raise OptionsError(f"--by: no row has the key {key!r}; there are: {', '.join(known) or 'none'}")


def groups(rows: Iterable[ScoredRow], key: str) -> list[tuple[Any, list[ScoredRow]]]:
    """(value, rows) for every value under `key`, ordered as spelled; rows without the key go by None."""
    found: dict[str, tuple[Any, list[ScoredRow]]] = {}
    for row in rows:
        value = row.sample.keys.get(key)
        found.setdefault(spelled(value), (value, []))[1].append(row)
    return [found[name] for name in sorted(found)]


def spelled(value: Any) -> str:
    """A value of a row as a heading."""
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def worst(rows: Iterable[ScoredRow], count: int) -> list[ScoredRow]:
    """The `count` rows with the most errors, those of the higher rate and then the earlier ones first."""
    # By errors and not by rate: those rows make the total, and one wrong word of one is no finding.
    wrong = [row for row in rows if row.score.errors]
    wrong.sort(key=lambda row: (-row.score.errors, row.score.ref_units))
    return wrong[:count]


@lru_cache(maxsize=256)
def _rules(language: str | None, normalizer: str | None, metric: str | None) -> Rules:
    return Rules.of(language, normalizer, metric)
