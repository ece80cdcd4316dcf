"""The report as one HTML file that needs nothing else: no script, no font, no address is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from oasr.bench import places, summary, svg
from oasr.bench.percentiles import Spread
from oasr.errors import OptionsError, OutputError
from oasr.output.results_file import atomic_file

GENERATOR = '<meta name="generator" content="oasr bench">'


def check(path: Path) -> None:
    """Refuse a place where no page can be written, or where something else would be lost.

    Raises:
        OptionsError: no such folder, no ordinary file, or a file that is no page of ours.
    """
    if not places.is_there(path, "--html"):
        return
    try:
        with path.open("rb") as file:
            # Enough for the head, in which a page of ours names its generator.
            start = file.read(1024)
    except OSError as error:
        raise OptionsError(f"--html: {path}: {error.strerror or error}") from error
    if start and GENERATOR.encode() not in start:
        raise OptionsError(f"--html: {path}: this file is no page of `oasr bench` and is not overwritten")


def write(path: Path, report: Mapping[str, Any]) -> None:
    """Write the page, replacing an earlier one whole.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        with atomic_file(path) as file:
            file.write(render(report).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def render(report: Mapping[str, Any]) -> str:
    """The page."""
    model, where = escape(report["model"]["name"]), report["environment"]
    style = files("oasr.bench").joinpath("page.css").read_text("utf-8")
    title = f"oasr bench: {model}, {escape(where['date'])}"
    warnings = summary.warnings(report)
    listed = "".join(f"<li>{escape(text)}</li>" for text in warnings)
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{GENERATOR}',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>",
            f"<h1>{title}</h1>",
            *(f'<p class="soft">{escape(line)}</p>' for line in summary.headline(report)),
            f"<p><code>{escape(report['command'])}</code></p>",
            f'<ul class="warn">{listed}</ul>' if warnings else "",
            "<h2>Figures</h2>",
            _figures(report),
            "<h2>Charts</h2>",
            f'<div class="charts">{"".join(_charts(report))}</div>',
            "<h2>Environment</h2>",
            _environment(report),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _figures(report: Mapping[str, Any]) -> str:
    runs = report["runs"]
    head = "".join(f'<th scope="col">batch size {run["batch_size"]}</th>' for run in runs)
    body = []
    for group, lines in groupby(summary.lines(report), key=lambda line: line.group):
        body.append(f'<tr><th scope="rowgroup" colspan="{len(runs) + 1}">{escape(group)}</th></tr>')
        for line in lines:
            about = f' <span class="soft">{escape(line.about)}</span>' if line.about else ""
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in line.cells)
            body.append(f'<tr><th scope="row">{escape(line.name)}{about}</th>{cells}</tr>')
    caption = "Medians of the repeats, with the least and the greatest in parentheses."
    return _table(caption, f'<th scope="col">figure</th>{head}', body)


def _charts(report: Mapping[str, Any]) -> list[str]:
    runs = report["runs"]
    charts = [
        ("RTFx by batch size", svg.throughput([(r["batch_size"], Spread(**r["rtfx"])) for r in runs], "RTFx"))
    ]
    for run in runs:
        if run["latency_s"]:
            latencies = [value for one in run["passes"] for value in one["latencies_s"]]
            marks = [(key, run["latency_s"][key]) for key in ("p50", "p95", "p99")]
            name = f"Latency of a row, batch size {run['batch_size']}"
            charts.append((name, svg.histogram(latencies, marks, name)))
    return [f"<figure><figcaption>{escape(name)}</figcaption>{chart}</figure>" for name, chart in charts]


def _environment(report: Mapping[str, Any]) -> str:
    rows: list[tuple[str, Any]] = []
    for part in ("environment", "model", "list", "settings"):
        rows += [(f"{part}: {key.replace('_', ' ')}", value) for key, value in report[part].items()]
    body = [
        f'<tr><th scope="row">{escape(name)}</th><td class="text">{escape(_plain(value))}</td></tr>'
        for name, value in rows
    ]
    return _table(
        "Where, with what and on what.", '<th scope="col">what</th><th scope="col">value</th>', body
    )


def _table(caption: str, head: str, body: Sequence[str]) -> str:
    # The box that scrolls must be reachable by keyboard on a narrow screen.
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _plain(value: Any) -> str:
    if value is None:
        return summary.NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items()) or summary.NONE
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
