"""The figures of a report as words, for terminal and page: one line a figure, one cell a batch size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oasr.bench.report import MIB

Run = Mapping[str, Any]
Cell = Callable[[Run], str]
STATION_NAMES = {
    "read": "waiting for audio",
    "collate_wait": "waiting for padding",
    "features": "features",
    "encoder": "encoder",
    "decode": "decoder",
    "readback": "waiting for read-back",
    "output": "output",
    "other": "everything else",
}
NONE = "–"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of every run; `about` says what it is in a sentence."""

    group: str
    name: str
    cells: tuple[str, ...]
    about: str = ""


def lines(report: Mapping[str, Any]) -> list[Line]:
    """Every figure, grouped, in the order in which they are read; lines without any value are left out."""
    runs = report["runs"]
    made = [
        Line(g, name, tuple(cell(run) for run in runs), about) for g, name, cell, about in _figures(report)
    ]
    return [line for line in made if set(line.cells) != {NONE}]


def _figures(report: Mapping[str, Any]) -> list[tuple[str, str, Cell, str]]:
    latencies: list[tuple[str, str, Cell, str]] = [
        ("Latency of a row, s", key, _latency(key), "") for key in _percentiles(report)
    ]
    return [
        ("Speed", "RTFx", _spread("rtfx"), "seconds of audio a second of wall time"),
        ("Speed", "RTFx in steady state", _spread("rtfx_steady"), "over the middle half of the results"),
        ("Speed", "utterances/s", _spread("utterances_per_s"), ""),
        ("Clock, s", "load", lambda run: figure(run["load_s"]), "find, check and read the model"),
        ("Clock, s", "warm-up", _warmup, "passes before the measurement"),
        ("Clock, s", "first result", _spread("first_result_s"), "from the start of a pass"),
        ("Clock, s", "steady state", _spread("steady_s"), "from the first result to the last"),
        *latencies,
        *(("Time shares", name, _share(key), "") for key, name in STATION_NAMES.items()),
        ("Padding", "share", lambda run: percent(run["padding_share"]), "of the encoder's input"),
        (
            "Memory",
            "before loading",
            lambda run: mebibytes(run["start_rss_bytes"]),
            "libraries and leftovers",
        ),
        ("Memory", "peak resident", lambda run: mebibytes(run["peak_rss_bytes"]), "of the process"),
        ("Memory", "peak GPU", lambda run: mebibytes(run["peak_gpu_bytes"]), "held by the allocator"),
        ("Errors", "WER", _rate("wer"), ""),
        ("Errors", "CER", _rate("cer"), ""),
        ("Errors", "S/D/I of N", _counts, "substitutions, deletions, insertions of reference units"),
        ("Errors", "not scored", _not_scored, "rows"),
        ("Errors", "failed rows", lambda run: str(run["failed"]) if run["failed"] else NONE, ""),
    ]


def headline(report: Mapping[str, Any]) -> list[str]:
    """What was run, on what, and when, in three lines; digests by their first digits."""
    run, settings, where = report["runs"][0], report["settings"], report["environment"]
    model, commit = report["model"], where["commit"]
    packages = where["packages"]
    work = (
        f"model {model['name']}",
        run["decode_method"],
        run["device"],
        run["dtype"],
        f"rows: {run['rows']}, {run['audio_s'] / 60:.1f} min of audio",
        f"warm-up {settings['warmup']}, repeats {settings['repeat']}",
    )
    changed = " with uncommitted changes" if where["uncommitted_changes"] else ""
    driver = f" (driver {where['gpu_driver']})" if where["gpu_driver"] else ""
    machine = (
        f"{where['gpu']}{driver}" if where["gpu"] else None,
        where["cpu"],
        f"{where['cores']} cores, {where['threads']} threads",
        f"python {where['python']}",
        f"torch {packages.get('torch', 'unknown')}",
        f"oasr {where['oasr']}" + (f" at {commit[:10]}{changed}" if commit else ""),
    )
    digests = ((name, report[name]["sha256"]) for name in ("model", "list"))
    when = (where["date"], *(f"{name} sha256 {digest[:12]}" for name, digest in digests if digest))
    return [" · ".join(filter(None, line)) for line in (work, machine, when)]


def warnings(report: Mapping[str, Any]) -> list[str]:
    """What a reader must know before trusting the figures."""
    settings, busy = report["settings"], report["environment"]["load_average"]
    found = []
    if not report["complete"]:
        found.append("stopped early: what is missing was not measured")
    if settings["warmup"] == 0:
        found.append("no warm-up: the first pass includes what happens once")
    if settings["repeat"] == 1:
        found.append("one repeat: nothing is known about the noise")
    if busy is not None and busy > 0.5 * report["environment"]["cores"]:
        found.append(f"the machine was busy before the start: load average {busy}")
    for run in report["runs"]:
        if not run["same_texts"]:
            found.append(f"batch size {run['batch_size']}: the passes did not give the same texts")
    if len({run["texts_sha256"] for run in report["runs"]}) > 1:
        found.append("the batch sizes did not give the same texts")
    return found


def figure(value: float | None) -> str:
    """A number with two or three digits that count, or all before the point: more would be noise."""
    if value is None:
        return NONE
    decimals = next((n for limit, n in ((0.1, 3), (10, 2), (100, 1)) if value < limit), 0)
    return f"{value:.{decimals}f}"


def percent(value: float | None) -> str:
    """A share as `12.3 %`."""
    return NONE if value is None else f"{100 * value:.1f} %"


def mebibytes(value: int | None) -> str:
    """`812 MiB`."""
    return NONE if value is None else f"{value / MIB:.0f} MiB"


def _percentiles(report: Mapping[str, Any]) -> list[str]:
    # A run whose rows have all failed has no latencies.
    return list(next((run["latency_s"] for run in report["runs"] if run["latency_s"]), {}))


def _latency(key: str) -> Cell:
    return lambda run: figure(run["latency_s"] and run["latency_s"][key])


def _share(key: str) -> Cell:
    return lambda run: percent(run["shares"][key])


def _spread(key: str) -> Cell:
    def cell(run: Run) -> str:
        spread = run[key]
        if spread is None:
            return NONE
        low, middle, high = (figure(spread[part]) for part in ("min", "median", "max"))
        # One pass has no spread to show.
        return middle + ("" if len(run["passes"]) == 1 else f" ({low}–{high})")

    return cell


def _warmup(run: Run) -> str:
    return figure(sum(run["warmup_s"])) if run["warmup_s"] else NONE


def _counts(run: Run) -> str:
    kinds = ("substitutions", "deletions", "insertions", "reference_units")
    scores = [run["errors"][metric] for metric in ("wer", "cer") if metric in run["errors"]]
    told = ["{}/{}/{} of {}".format(*(score[kind] for kind in kinds)) for score in scores]
    return "; ".join(told) or NONE


def _not_scored(run: Run) -> str:
    left_out = (("failed", "failed"), ("without_reference", "without reference"))
    told = [f"{run['errors'][key]} {words}" for key, words in left_out if run["errors"][key]]
    return ", ".join(told) or NONE


def _rate(metric: str) -> Cell:
    def cell(run: Run) -> str:
        score = run["errors"].get(metric)
        return NONE if score is None or score["rate"] is None else f"{score['rate']:.2f} %"

    return cell
