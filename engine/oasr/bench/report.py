"""The report of a benchmark: one JSON object, from which the table, the CSV rows and the page are made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.bench.percentiles import Spread, latency_percentiles
from oasr.errors import OptionsError
from oasr.executor.counters import STATIONS, Counters

if TYPE_CHECKING:
    from oasr.bench.runs import Measured, Pass

SCHEMA = "oasr-bench/1"
REPEATED = ("rtfx", "rtfx_steady", "utterances_per_s", "wall_s", "first_result_s", "steady_s")
"""Keys of a pass of which a run gives the spread."""
MIB = 2**20


def build(measured: Sequence[Measured], context: Mapping[str, Any]) -> dict[str, Any]:
    """The report of some runs over one list.

    Args:
        measured: one entry a batch size, at least one.
        context: `command`, `list`, `settings` and `complete`, as the command knows them.
    """
    first = measured[0]
    return {
        "schema": SCHEMA,
        **context,
        "environment": first.environment,
        "model": first.model,
        "runs": [describe_run(one) for one in measured],
    }


def describe_run(run: Measured) -> dict[str, Any]:
    """One batch size: what was measured in each pass, and over all of them."""
    passes = [_describe_pass(one, run.in_flight) for one in run.passes]
    counted = _sum(run.passes)
    return {
        "batch_size": run.batch_size,
        "device": run.device,
        "dtype": run.dtype,
        "decode_method": run.decode_method,
        "rows": run.passes[0].rows,
        "failed": run.passes[0].failed,
        "audio_s": _round(run.passes[0].audio_s),
        "load_s": _round(run.load_s),
        "warmup_s": [_round(one.wall_s) for one in run.warmups],
        **{key: _spread([one[key] for one in passes]) for key in REPEATED},
        # Over the rows of all passes together: one pass has few in its tail.
        "latency_s": _rounded(latency_percentiles([s for one in run.passes for s in one.latencies_s])),
        "shares": shares(counted, sum(one.wall_s for one in run.passes)),
        "device_clock": bool(counted.device_seconds),
        "padding_share": _round(counted.padding_share),
        "start_rss_bytes": run.start_rss_bytes,
        "peak_rss_bytes": run.peak_rss_bytes,
        "peak_rss_scope": run.peak_rss_scope,
        "peak_gpu_bytes": run.peak_gpu_bytes,
        "errors": run.score,
        # Of the warm-ups too, which decode the same list.
        "same_texts": len({one.texts_sha256 for one in (*run.warmups, *run.passes)}) == 1,
        "texts_sha256": run.passes[0].texts_sha256,
        "passes": passes,
    }


def _describe_pass(one: Pass, in_flight: int) -> dict[str, Any]:
    first_s = one.arrivals_s[0]
    counters = one.counters
    return {
        "wall_s": _round(one.wall_s),
        "first_result_s": _round(first_s),
        "steady_s": _round(one.wall_s - first_s),
        "rtfx": _round(one.audio_s / one.wall_s),
        "rtfx_steady": _round(one.steady_rtfx(in_flight)),
        "utterances_per_s": _round((one.rows - one.failed) / one.wall_s),
        "latency_s": _rounded(latency_percentiles(one.latencies_s)),
        # One by one, for the histogram of the page.
        "latencies_s": [_round(value) for value in one.latencies_s],
        "seconds": {name: _round(counters.seconds.get(name, 0.0)) for name in STATIONS},
        "device_seconds": {name: _round(value) for name, value in counters.device_seconds.items()},
        "reader_threads_s": _round(counters.reader_seconds),
        "batches": counters.batches,
        "decoder_steps": counters.steps,
        "oom_splits": counters.oom_splits,
        "isolated_rows": counters.isolated,
        "redecoded_rows": counters.redecoded,
    }


def shares(counters: Counters, wall_s: float) -> dict[str, float]:
    """Station → its part of the wall time, `other` being the rest.

    Where a CUDA device was measured, its own time stands for a station. The host then works and waits
    beside it, so that the shares may add up to more than 1 and `other` to 0.
    """
    spent = {name: counters.seconds.get(name, 0.0) for name in STATIONS} | counters.device_seconds
    parts = {name: round(seconds / wall_s, 4) for name, seconds in spent.items()}
    return parts | {"other": round(max(0.0, 1 - sum(spent.values()) / wall_s), 4)}


def read(path: Path) -> dict[str, Any]:
    """A report that `oasr bench --json` wrote.

    Raises:
        OptionsError: the file cannot be read, or holds something else.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OptionsError(
            f"{path}: expected a report of `oasr bench --json`, cannot read it: {reason}"
        ) from error
    found = value.get("schema") if isinstance(value, dict) else f"a JSON {type(value).__name__}"
    if found != SCHEMA:
        raise OptionsError(
            f"{path}: expected a report of `oasr bench --json` (schema {SCHEMA!r}), found {found!r}; "
            "reports are what `oasr bench LIST --json > FILE` writes"
        )
    return value


def _sum(passes: Sequence[Pass]) -> Counters:
    """The counters of all passes added up."""
    total = Counters()
    for one in passes:
        total = total.plus(one.counters)
    return total


def _spread(values: Sequence[float | None]) -> dict[str, float] | None:
    spread = Spread.of(values)
    return None if spread is None else _rounded(spread.as_dict())


def _rounded(values: Mapping[str, float] | None) -> dict[str, Any] | None:
    return None if values is None else {key: _round(value) for key, value in values.items()}


def _round(value: float | None) -> float | None:
    """To a tenth of a millisecond: beyond that a report would be mostly digits."""
    return None if value is None else round(value, 4)
