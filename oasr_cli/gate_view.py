"""`oasr gate` for people: a table of verdicts, the reasons under it, and one line that sums up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oasr.gate.runner import Outcome

from oasr_cli import console
from oasr_cli.console import ExitCode

# A verdict that is not listed here fails the gate, and is red.
_STYLES = {"passed": "green", "better": "cyan", "unchanged": "green", "recorded": "cyan", "absent": "dim"}
_HEADER = ("key", "verdict", "record %", "now %", "points", "S/D/I", "units", "s")


def show(outcomes: Sequence[Outcome]) -> None:
    """Print the table and the reasons to stdout."""
    console.result_table(_HEADER, [_cells(outcome) for outcome in outcomes], right=range(2, 8), fold=0)
    for outcome in outcomes:
        if outcome.reason:
            key = (f"{outcome.entry.key}: {outcome.verdict}: ", _style(outcome))
            console.result_spans([key, (console.printable(outcome.reason), "")])


def sum_up(outcomes: Sequence[Outcome], code: ExitCode) -> None:
    """Say on stderr how many got which verdict, and what that makes of the gate."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    words = {ExitCode.OK: "passed", ExitCode.BROKEN: "measured nothing", ExitCode.GATE: "failed"}
    console.note(f"gate {words[code]}: {listed}", style="green" if code == ExitCode.OK else "bold red")


def _cells(outcome: Outcome) -> tuple[str | tuple[str, str], ...]:
    record, measured = outcome.entry.record, outcome.measured
    now = None if measured is None else measured.score
    shown = now or record  # of what could not be measured, the record
    counts = "" if shown is None else f"{shown.substitutions}/{shown.deletions}/{shown.insertions}"
    return (
        outcome.entry.key,
        (outcome.verdict, _style(outcome)),
        _percent(None if record is None else record.rate),
        _percent(None if now is None else now.rate),
        "" if outcome.difference is None else f"{outcome.difference:+.2f}",
        counts,
        "" if shown is None else str(shown.ref_units),
        "" if measured is None else f"{measured.seconds:.1f}",
    )


def _style(outcome: Outcome) -> str:
    return _STYLES.get(outcome.verdict, "bold red")


def _percent(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.2f}"
