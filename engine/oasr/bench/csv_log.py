"""One line a run in a CSV file that grows from benchmark to benchmark (RFC 4180, UTF-8)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oasr.bench import places
from oasr.bench.report import MIB
from oasr.errors import OptionsError, OutputError
from oasr.executor.counters import STATIONS

COLUMNS = (
    *("date", "commit", "oasr", "python", "torch", "cpu", "cores", "gpu", "gpu_driver", "threads"),
    *("model", "model_sha256", "list", "list_sha256", "device", "dtype", "decode_method", "decode_options"),
    *("batch_size", "warmup", "repeat", "rows", "failed", "audio_s", "load_s", "warmup_s"),
    *("first_result_s", "steady_s", "wall_s", "rtfx_min", "rtfx", "rtfx_max", "rtfx_steady"),
    *("utterances_per_s", "latency_p50_s", "latency_p90_s", "latency_p95_s", "latency_p99_s"),
    *(f"share_{name}" for name in (*STATIONS, "other")),
    *("padding_share", "peak_rss_mib", "peak_gpu_mib", "wer_pct", "cer_pct"),
)
"""The header. Lines of one file must mean the same, so a file with another header is refused."""


class CsvLog:
    """Appends runs to one file."""

    def __init__(self, path: Path) -> None:
        """Look at the file, and change nothing yet.

        Raises:
            OptionsError: it holds something else, or lines of another header.
        """
        self._path = path
        if not places.is_there(path, "--csv"):
            return
        try:
            with path.open(encoding="utf-8", newline="") as lines:
                header = next(csv.reader(lines), [])
        except (OSError, ValueError, csv.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise OptionsError(f"--csv: {path}: cannot be read as a CSV file: {reason}") from error
        if header:
            _check_header(path, header)

    def append(self, report: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        """Add one run, behind the header in a new or empty file.

        Raises:
            OutputError: it cannot be written.
        """
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
        try:
            # In binary: line ends stay as written, and the last byte can be looked at.
            with self._path.open("ab+") as file:
                size = file.seek(0, io.SEEK_END)
                if size == 0:
                    writer.writeheader()
                elif not _ends_a_line(file):
                    text.write("\r\n")  # the last writer was killed: its half line stays a line of its own
                writer.writerow(values(report, run))
                file.write(text.getvalue().encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise OutputError(f"{self._path}: cannot be written: {error.strerror or error}") from error


def values(report: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Column → value of one run; what was not measured is empty, repeated values are medians."""
    where, settings, latency = report["environment"], report["settings"], run["latency_s"] or {}
    medians = ("first_result_s", "steady_s", "wall_s", "rtfx", "rtfx_steady", "utterances_per_s")
    own = ("device", "dtype", "decode_method", "batch_size", "rows", "failed", "audio_s", "load_s")
    row = {
        # The first ten columns bear the names of the environment, but torch is one of its packages.
        **{key: where[key] for key in COLUMNS[:10] if key != "torch"},
        "torch": where["packages"].get("torch"),
        "model": report["model"]["name"],
        "model_sha256": report["model"]["sha256"],
        "list": " ".join(report["list"]["inputs"]),
        "list_sha256": report["list"]["sha256"],
        "decode_options": " ".join(f"{key}={value}" for key, value in settings["decode_options"].items()),
        "warmup": settings["warmup"],
        "repeat": len(run["passes"]),
        **{key: run[key] for key in own},
        "warmup_s": round(sum(run["warmup_s"]), 4) if run["warmup_s"] else None,
        **{key: run[key] and run[key]["median"] for key in medians},
        "rtfx_min": run["rtfx"]["min"],
        "rtfx_max": run["rtfx"]["max"],
        **{f"latency_p{q}_s": latency.get(f"p{q}") for q in (50, 90, 95, 99)},
        **{f"share_{name}": share for name, share in run["shares"].items()},
        "padding_share": run["padding_share"],
        "peak_rss_mib": round(run["peak_rss_bytes"] / MIB, 1),
        "peak_gpu_mib": None if run["peak_gpu_bytes"] is None else round(run["peak_gpu_bytes"] / MIB, 1),
        **{f"{metric}_pct": run["errors"].get(metric, {}).get("rate") for metric in ("wer", "cer")},
    }
    return {name: row[name] for name in COLUMNS}


def _check_header(path: Path, header: list[str]) -> None:
    if tuple(header) == COLUMNS:
        return
    lacking = [name for name in COLUMNS if name not in header]
    unknown = [name for name in header if name not in COLUMNS]
    differences = (
        f"it lacks {', '.join(lacking)}" if lacking else "",
        f"it has {', '.join(unknown)}" if unknown else "",
        "" if lacking or unknown else "its columns are in another order",
    )
    raise OptionsError(
        f"--csv: {path}: its header is not that of this version of `oasr bench`: "
        f"{'; '.join(filter(None, differences))}. Lines of two headers do not mix: give another file"
    )


def _ends_a_line(file: Any) -> bool:
    file.seek(-1, io.SEEK_END)
    return bool(file.read(1) == b"\n")
