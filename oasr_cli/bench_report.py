"""What `oasr bench` prints: the table of a report, and two reports side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.errors import OptionsError

from oasr_cli import console

if TYPE_CHECKING:
    from oasr.bench.compare import Comparison, Figure


def show(report: Mapping[str, Any]) -> None:
    """Print the figures to stdout, and what must be known before trusting them to stderr."""
    from oasr.bench import summary

    for line in summary.headline(report):
        console.result(line)
    rows: list[tuple[str, ...]] = [("", *(f"batch size {run['batch_size']}" for run in report["runs"]))]
    for group, lines in groupby(summary.lines(report), key=lambda line: line.group):
        rows.append((group, *("" for _ in report["runs"])))
        rows += [(f"  {line.name}", *line.cells) for line in lines]
    for columns in _that_fit(rows):
        console.result("")
        header, *body = ([row[0], *(row[column] for column in columns)] for row in rows)
        console.result_table(header, body)
    for warning in summary.warnings(report):
        console.note(f"warning: {warning}", "yellow")


def _that_fit(rows: Sequence[Sequence[str]]) -> list[list[int]]:
    """The columns behind the first one, parted so that each part fits beside it on the terminal."""
    first, *widths = (max(len(row[column]) for row in rows) + 2 for column in range(len(rows[0])))
    room = console.stdout_width()
    parts: list[list[int]] = [[]]
    for column, width in enumerate(widths, 1):
        taken = first + sum(widths[other - 1] for other in parts[-1])
        # The last column needs no gap behind it.
        if room is not None and parts[-1] and taken + width - 2 > room:
            parts.append([])
        parts[-1].append(column)
    return parts


def compare_files(paths: Sequence[str], allow_different: bool, as_json: bool) -> None:
    """Read two reports and print their ratios.

    Raises:
        OptionsError: not two files, not reports, or reports of different work.
    """
    from oasr.bench import report
    from oasr.bench.compare import compare

    if len(paths) != 2:
        raise OptionsError(f"--compare: expected two reports, A.json and B.json, got {len(paths)}")
    a, b = (report.read(Path(path)) for path in paths)
    found = compare(a, b, allow_different)
    if as_json:
        console.result_json(asdict(found))
        return
    for letter, path in zip("AB", paths, strict=True):
        console.result(f"{letter}: {path}")
    for text in found.different_work:
        console.note(f"warning: different work: {text}: the ratios are no measure of speed", "yellow")
    for text in found.differences:
        console.result(f"not the same: {text}")
    _print_figures(found)


def _print_figures(found: Comparison) -> None:
    header = ("", "A", "B", "B/A min–median–max", "B is")
    rows: list[tuple[str, ...]] = []
    for size, figures in found.runs.items():
        rows.append((f"batch size {size}", "", "", "", ""))
        rows += [_figure_row(figure) for figure in figures]
        for metric, rates in found.error_rates[size].items():
            told = ("–" if rate is None else f"{rate:.2f} %" for rate in rates)
            verdict = "equal" if rates[0] == rates[1] else "not the same"
            rows.append((f"  {metric.upper()}", *told, "", verdict))
    console.result_table(header, rows)
    for letter, sizes in (("A", found.only_a), ("B", found.only_b)):
        if sizes:
            console.note(f"only in {letter}, not compared: batch size {', '.join(map(str, sizes))}")


def _figure_row(figure: Figure) -> tuple[str, ...]:
    from oasr.bench import summary

    ratio, unit = figure.ratio, f" {figure.unit}" if figure.unit else ""
    a, b = (f"{summary.figure(value)}{unit}" for value in (figure.a, figure.b))
    parts = [ratio.median] if ratio.min == ratio.max else [ratio.min, ratio.median, ratio.max]
    return (f"  {figure.name}", a, b, "–".join(f"{part:.3f}" for part in parts), figure.verdict)
