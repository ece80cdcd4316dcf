"""What `oasr score` found, ready to be shown as text or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from oasr.scoring.bootstrap import Comparison, Interval, Resampling, compare, rate_interval
from oasr.scoring.report import ScoredRow, by_metric, groups, pooled, worst
from oasr.scoring.shift import find_shift
from oasr.scoring.wer import Score


@dataclass(frozen=True)
class System:
    """The scored rows of one hypothesis file, in its order."""

    path: str
    rows: Sequence[ScoredRow]

    @cached_property
    def metrics(self) -> dict[str, list[ScoredRow]]:
        """Metric → its rows."""
        return by_metric(self.rows)

    @property
    def failed(self) -> list[str]:
        """Ids of the rows that failed and count as deletions."""
        return [row.sample.id for row in self.rows if row.failed]

    def total(self, metric: str) -> Score:
        """All rows of one metric added up."""
        return pooled(self.metrics[metric])

    def total_without_failed(self, metric: str) -> Score | None:
        """The same without the rows that failed; None when all of them did."""
        heard = [row for row in self.metrics[metric] if not row.failed]
        return pooled(heard) if heard else None


@dataclass(frozen=True)
class Report:
    """Everything that is shown.

    Attributes:
        systems: one, or two to be compared, over the same samples.
        left_out: ids of failed rows that were left out on request.
        by: keys to group by.
        worst: how many rows to show aligned.
        resampling: None = no interval and no p-value.
    """

    systems: Sequence[System]
    left_out: Sequence[str] = ()
    by: Sequence[str] = ()
    worst: int = 5
    resampling: Resampling | None = None

    @property
    def metrics(self) -> list[str]:
        """The metrics that occur; the same in all systems, since the rules belong to the samples."""
        return list(self.systems[0].metrics)

    def interval(self, system: System, metric: str) -> Interval | None:
        """95 % interval of a total."""
        if self.resampling is None:
            return None
        return rate_interval([row.score for row in system.metrics[metric]], self.resampling)

    def comparison(self, metric: str) -> Comparison | None:
        """The second system against the first, where there are two."""
        if self.resampling is None or len(self.systems) != 2:
            return None
        first, second = ([row.score for row in system.metrics[metric]] for system in self.systems)
        return compare(first, second, self.resampling)

    def grouped(self, key: str, metric: str) -> list[tuple[Any, list[Score]]]:
        """(value, one pooled score a system) for every value of `key`."""
        per_system = [groups(system.metrics[metric], key) for system in self.systems]
        return [
            (columns[0][0], [pooled(rows) for _, rows in columns])
            for columns in zip(*per_system, strict=True)
        ]

    def worst_rows(self, system: System) -> list[ScoredRow]:
        """The rows that cost most."""
        return worst(system.rows, self.worst)

    @cached_property
    def warnings(self) -> list[str]:
        """What makes the figures doubtful."""
        found = []
        for system in self.systems:
            shift = find_shift(system.rows)
            if shift is not None:
                found.append(f"{system.path}: {shift.describe()}")
        rows = self.systems[0].rows
        # References and rules are the same for all systems, so the first one speaks for both.
        empty = [row for row in rows if not row.score.ref_units]
        if len(empty) == len(rows):
            found.append("every reference is empty after normalising: there is no rate, only insertions")
        elif empty:
            found.append(
                f"{len(empty)} of {len(rows)} references are empty after normalising; "
                "what is heard there counts as insertions"
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        comparisons = {metric: self.comparison(metric) for metric in self.metrics}
        return {
            "systems": [self._system_json(number) for number in range(len(self.systems))],
            "comparison": {
                metric: _rounded(asdict(found)) for metric, found in comparisons.items() if found is not None
            },
            "bootstrap": None if self.resampling is None else asdict(self.resampling),
            "left_out": list(self.left_out),
            "warnings": self.warnings,
        }

    def _system_json(self, number: int) -> dict[str, Any]:
        system = self.systems[number]
        totals = {}
        for metric in self.metrics:
            interval = self.interval(system, metric)
            totals |= _score_json(system.total(metric), interval_95=_rounded(interval))
        return {
            "hypotheses": system.path,
            **totals,
            "failed": system.failed,
            "by": {
                key: [
                    {"value": value, **_score_json(scores[number])}
                    for metric in self.metrics
                    for value, scores in self.grouped(key, metric)
                ]
                for key in self.by
            },
            "worst": [_row_json(row) for row in self.worst_rows(system)],
        }


def _score_json(score: Score, **more: Any) -> dict[str, Any]:
    (metric, counts), *_ = score.as_row().items()
    return {metric: {**counts, "rows": score.rows, **more}}


def _row_json(row: ScoredRow) -> dict[str, Any]:
    return {
        "id": row.sample.id,
        "failed": row.failed,
        **row.score.as_row(),
        "reference": row.sample.reference,
        "hypothesis": row.hypothesis,
        "alignment": [list(step) for step in row.alignment()],
    }


def _rounded(value: Any) -> Any:
    """Floats to six decimals, which percentages and shares need no more of."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value
