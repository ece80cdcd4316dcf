"""`oasr score` for people: a table of totals, tables by key, and the worst rows with their alignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oasr.scoring.alignment import Aligned
from oasr.scoring.bootstrap import Interval
from oasr.scoring.report import ScoredRow, spelled
from oasr.scoring.wer import Score

from oasr_cli import console
from oasr_cli.score_report import Report, System

_MARKS = {"equal": "", "substitute": "S", "delete": "D", "insert": "I"}
# The marks say it without colours: in a file, in a log, and for eyes that do not tell red from yellow.
_STYLES = {"equal": "", "substitute": "yellow", "delete": "red", "insert": "cyan"}
_LABELS = ("  REF  ", "  HYP  ", "       ")
_SHOWN_FAILURES = 10


def show(report: Report) -> None:
    """Print everything: the figures to stdout, what makes them doubtful to stderr."""
    _totals(report)
    _comparisons(report)
    _failures(report)
    for key in report.by:
        _groups(report, key)
    for system in report.systems:
        _worst(report, system)
    for warning in report.warnings:
        console.note(f"warning: {warning}", style="yellow")


def _totals(report: Report) -> None:
    header = ["metric", "rate %", "95 % interval", "S", "D", "I", "units", "rows", "normalizer", "hypotheses"]
    rows = []
    for metric in report.metrics:
        for number, system in enumerate(report.systems, 1):
            score = system.total(metric)
            figures = (_rate(score), _interval(report.interval(system, metric)), *_counts(score))
            name = f"{number}: {system.path}" if len(report.systems) > 1 else system.path
            rows.append((metric.upper(), *figures, score.normalizer, console.printable(name)))
    console.result_table(header, rows, right=range(1, 8))


def _comparisons(report: Report) -> None:
    for metric in report.metrics:
        found = report.comparison(metric)
        if found is None or report.resampling is None:
            continue
        _say(
            f"2 against 1: {found.difference:+.2f} points of {metric.upper()} (95 % interval "
            f"{found.interval[0]:+.2f} to {found.interval[1]:+.2f}), p = {found.p_value:.4f}; "
            f"better in {100 * found.improved:.1f} % of {report.resampling.draws} draws"
        )


def _failures(report: Report) -> None:
    """Say what became of rows without a hypothesis, and what the rate would be without them."""
    if report.left_out:
        _say(f"left out, {_rows(report.left_out)} that failed: {_some(report.left_out)}")
    for system in report.systems:
        if system.failed:
            without = [
                f"{metric.upper()} without them: {_rate(score)} %"
                for metric in report.metrics
                if (score := system.total_without_failed(metric)) is not None
            ]
            _say(
                f"{system.path}: {_rows(system.failed)} that failed count as all deletions "
                f"({'; '.join(without) or 'no row was transcribed'}): {_some(system.failed)}"
            )


def _groups(report: Report, key: str) -> None:
    """One line a value; two systems stand side by side."""
    two = len(report.systems) == 2
    rates = ["1: rate %", "2: rate %", "difference"] if two else ["rate %", "S", "D", "I"]
    rows = []
    for metric in report.metrics:
        for value, scores in report.grouped(key, metric):
            shown = [_rate(score) for score in scores]
            shown += [_difference(*scores)] if two else _counts(scores[0])[:3]
            rows.append((console.printable(spelled(value)), metric.upper(), *shown, *_counts(scores[0])[3:]))
    console.result("")
    header = [key, "metric", *rates, "units", "rows"]
    console.result_table(header, rows, right=range(2, len(header)), fold=0)


def _worst(report: Report, system: System) -> None:
    rows = report.worst_rows(system)
    if not rows:
        return
    of = f" of {system.path}" if len(report.systems) > 1 else ""
    console.result("")
    console.result_spans([(f"most errors{of}", "bold"), ("; alignments of the normalised texts", "")])
    for row in rows:
        console.result("")
        counts = f"S {row.score.substitutions}, D {row.score.deletions}, I {row.score.insertions}"
        failed = "; failed, counts as all deletions" if row.failed else ""
        percent = "" if row.score.rate is None else " %"
        text = f"  {_rate(row.score)}{percent} ({counts}, {row.score.ref_units} units{failed})"
        console.result_spans([(console.printable(row.sample.id), "bold"), (text, "")])
        for line in diff_lines(row, console.stdout_width()):
            console.result_spans(line)


def diff_lines(row: ScoredRow, width: int | None) -> Iterator[list[tuple[str, str]]]:
    """The alignment of a row as lines of (text, style): reference, hypothesis, marks of the errors.

    Folded to `width` columns of the terminal; None = not folded. A gap is drawn as stars.
    """
    # Characters stand close, as the text is written; words need the gap.
    gap = " " if row.score.metric == "wer" else ""
    room = None if width is None else max(20, width - len(_LABELS[0]))
    for steps in _folded(row.alignment(), room, len(gap)):
        for which, label in enumerate(_LABELS):
            line = [(label, "dim")]
            for number, step in enumerate(steps):
                line += [(gap if number else "", ""), (_cells(step)[which], _STYLES[step.kind])]
            if which < 2 or any(step.kind != "equal" for step in steps):
                yield line


def _folded(steps: Sequence[Aligned], room: int | None, gap: int) -> Iterator[list[Aligned]]:
    from rich.cells import cell_len

    block: list[Aligned] = []
    used = 0
    for step in steps:
        size = cell_len(_cells(step)[0]) + gap
        if block and room is not None and used + size > room:
            yield block
            block, used = [], 0
        block.append(step)
        used += size
    if block:
        yield block


def _cells(step: Aligned) -> tuple[str, str, str]:
    """Reference, hypothesis and mark, all as wide as the widest of them on a terminal."""
    from rich.cells import cell_len

    texts = [console.printable(text) for text in (step.reference, step.hypothesis)]
    width = max(*map(cell_len, texts), 1)
    reference, hypothesis = (text + " " * (width - cell_len(text)) if text else "*" * width for text in texts)
    return reference, hypothesis, _MARKS[step.kind].ljust(width)


def _say(text: str) -> None:
    console.result_spans([(text, "")])


def _rate(score: Score) -> str:
    return "undefined" if score.rate is None else f"{score.rate:.2f}"


def _difference(first: Score, second: Score) -> str:
    if first.rate is None or second.rate is None:
        return "undefined"
    return f"{second.rate - first.rate:+.2f}"


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def _counts(score: Score) -> list[str]:
    """S, D, I, units, rows."""
    counts = (score.substitutions, score.deletions, score.insertions, score.ref_units, score.rows)
    return [str(count) for count in counts]


def _rows(ids: Sequence[str]) -> str:
    return f"{len(ids)} row{'' if len(ids) == 1 else 's'}"


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN_FAILURES} more (--json lists all)" if len(ids) > _SHOWN_FAILURES else ""
    return ", ".join(map(console.printable, ids[:_SHOWN_FAILURES])) + more
