"""Two reports side by side: ratios of every pair of repeats, and what the reports do not have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from oasr.bench.percentiles import LATENCY_PERCENTILES, Spread
from oasr.errors import OptionsError

Report = Mapping[str, Any]
Verdict = Literal["faster", "slower", "more", "less", "equal", "inside the noise", "noise unknown"]
_AUDIO_S = 0.01


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of two runs.

    Attributes:
        ratio: B over A, over every pair of a repeat of A with a repeat of B: the repeats of two reports
            were not interleaved, so no pair belongs together more than another.
        verdict: "inside the noise" when the ratios lie on both sides of 1 (or reach it); "noise
            unknown" when a side has one value only.
    """

    name: str
    unit: str
    a: float
    b: float
    ratio: Spread
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two reports.

    Attributes:
        different_work: why the figures measure different things; empty unless allowed.
        differences: what else was not the same, which may be what is compared.
        runs: batch size → its figures.
        only_a, only_b: batch sizes that the other report lacks.
        error_rates: batch size → metric → (A, B) in percent.
    """

    different_work: tuple[str, ...]
    differences: tuple[str, ...]
    runs: Mapping[int, tuple[Figure, ...]]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    error_rates: Mapping[int, Mapping[str, tuple[float | None, float | None]]]


def compare(a: Report, b: Report, allow_different: bool = False) -> Comparison:
    """Compare two reports, batch size by batch size.

    Raises:
        OptionsError: they are of different lists or models and that was not allowed, or they have no
            batch size in common.
    """
    runs_a, runs_b = ({run["batch_size"]: run for run in report["runs"]} for report in (a, b))
    common = [size for size in runs_a if size in runs_b]
    if not common:
        sizes = " and ".join(", ".join(map(str, runs)) for runs in (runs_a, runs_b))
        raise OptionsError(f"the reports have no batch size in common: {sizes}; measure one again")
    different = tuple(_different_work(a, b, [(runs_a[size], runs_b[size]) for size in common]))
    if different and not allow_different:
        raise OptionsError(
            f"the reports measure different work: {'; '.join(different)}. A ratio of their figures says "
            "nothing about speed; --allow-different prints it all the same"
        )
    return Comparison(
        different,
        tuple(_differences(a, b)),
        {size: tuple(_figures(runs_a[size], runs_b[size])) for size in common},
        tuple(size for size in runs_a if size not in runs_b),
        tuple(size for size in runs_b if size not in runs_a),
        {size: _error_rates(runs_a[size], runs_b[size]) for size in common},
    )


def _different_work(a: Report, b: Report, runs: Sequence[tuple[Report, Report]]) -> Iterator[str]:
    for part, word in (("list", "lists"), ("model", "models")):
        names = [_name(report, part) for report in (a, b)]
        digests = [report[part]["sha256"] for report in (a, b)]
        # A model whose weights have no digest is known by its name alone.
        if digests[0] != digests[1] or (digests[0] is None and names[0] != names[1]):
            yield f"{word} differ, {names[0]} against {names[1]}"
    for run_a, run_b in runs:
        done_a, done_b = (run["rows"] - run["failed"] for run in (run_a, run_b))
        if done_a != done_b or abs(run_a["audio_s"] - run_b["audio_s"]) > _AUDIO_S:
            yield (
                f"at batch size {run_a['batch_size']} {done_a} rows ({run_a['audio_s']:.1f} s) against "
                f"{done_b} ({run_b['audio_s']:.1f} s) were transcribed"
            )


def _name(report: Report, part: str) -> str:
    name = report["model"]["name"] if part == "model" else " ".join(report["list"]["inputs"])
    return f"{name} (sha256 {str(report[part]['sha256'])[:12]})"


def _differences(a: Report, b: Report) -> Iterator[str]:
    """Settings, machine and versions that are not the same; dates and load differ always."""
    keys = ("device", "dtype", "decode_method")
    # Of the first batch size: a sweep changes nothing else.
    runs = ({key: report["runs"][0][key] for key in keys} for report in (a, b))
    for one, other in (runs, *((a[part], b[part]) for part in ("settings", "environment"))):
        for key in {**one, **other}:
            if key not in ("date", "load_average") and one.get(key) != other.get(key):
                yield f"{key.replace('_', ' ')}: {_plain(one.get(key))} against {_plain(other.get(key))}"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key} {item}" for key, item in value.items()) or "none"
    return "none" if value is None else str(value)


_Getter = Callable[[Report], "Sequence[float | None]"]


def _figures(a: Report, b: Report) -> Iterator[Figure]:
    for name, unit, get, words in _METRICS:
        # No ratio to what was not measured, nor to the zero of a list that failed whole.
        values_a, values_b = ([v for v in get(run) if v] for run in (a, b))
        if not values_a or not values_b:
            continue
        ratio = Spread.of([y / x for x in values_a for y in values_b])
        middle_a, middle_b = Spread.of(values_a), Spread.of(values_b)
        if ratio is None or middle_a is None or middle_b is None:
            continue
        known = min(len(values_a), len(values_b)) > 1
        yield Figure(name, unit, middle_a.median, middle_b.median, ratio, _verdict(ratio, known, words))


def _verdict(ratio: Spread, known: bool, words: tuple[Verdict, Verdict]) -> Verdict:
    """`words` are what a ratio above and one below 1 mean for B."""
    if ratio.min == ratio.max == 1:
        return "equal"
    if not known:
        return "noise unknown"
    if ratio.min <= 1 <= ratio.max:
        return "inside the noise"
    return words[0] if ratio.min > 1 else words[1]


def _of_pass(key: str) -> _Getter:
    return lambda run: [one[key] for one in run["passes"]]


def _latency(key: str) -> _Getter:
    return lambda run: [one["latency_s"] and one["latency_s"][key] for one in run["passes"]]


def _once(key: str, scale: float = 1.0) -> _Getter:
    return lambda run: [None if run[key] is None else run[key] / scale]


_RATE: tuple[Verdict, Verdict] = ("faster", "slower")
_TIME: tuple[Verdict, Verdict] = ("slower", "faster")
_METRICS: tuple[tuple[str, str, _Getter, tuple[Verdict, Verdict]], ...] = (
    ("RTFx", "", _of_pass("rtfx"), _RATE),
    ("RTFx in steady state", "", _of_pass("rtfx_steady"), _RATE),
    ("utterances/s", "", _of_pass("utterances_per_s"), _RATE),
    ("first result", "s", _of_pass("first_result_s"), _TIME),
    *((f"latency p{q}", "s", _latency(f"p{q}"), _TIME) for q in LATENCY_PERCENTILES),
    ("load", "s", _once("load_s"), _TIME),
    ("peak resident", "MiB", _once("peak_rss_bytes", 2**20), ("more", "less")),
    ("peak GPU", "MiB", _once("peak_gpu_bytes", 2**20), ("more", "less")),
)


def _error_rates(a: Report, b: Report) -> dict[str, tuple[float | None, float | None]]:
    """The rate of each metric that a side has: "wer", "cer"."""
    metrics = [m for m in ("wer", "cer") if m in a["errors"] or m in b["errors"]]
    return {m: (_rate(a, m), _rate(b, m)) for m in metrics}


def _rate(run: Report, metric: str) -> float | None:
    score = run["errors"].get(metric)
    return None if score is None else score["rate"]
