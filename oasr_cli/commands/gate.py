"""`oasr gate`: pinned error rates in, a verdict on each out."""

from __future__ import annotations

import json as jsonlib  # --json has the name
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from oasr.errors import OptionsError, OutputError

from oasr_cli import arguments as flag
from oasr_cli import console
from oasr_cli.console import ExitCode

if TYPE_CHECKING:
    from oasr.gate.assets import Roots
    from oasr.gate.runner import Outcome
    from oasr.gate.schema import Entry


def gate(
    pinned: flag.PinnedRates,
    only: flag.Only = None,
    assets_root: flag.AssetsRoot = None,
    strict_assets: flag.StrictAssets = False,
    update: flag.Update = False,
    why: flag.Why = None,
    junit: flag.JUnit = None,
    report: flag.JsonReport = None,
    json: flag.AsJson = False,
) -> None:
    """Measure pinned error rates again; fail when one got worse.

    Exit code: 0 none is worse, 1 nothing could be measured or a report not be written, 2 usage or a malformed
    FILE, 4 a rate exceeds its record by more than the tolerance, cannot be compared with it, or could not be
    measured.
    """
    from oasr.gate.assets import Roots
    from oasr.gate.junit import as_json, junit_xml
    from oasr.gate.runner import judge
    from oasr.gate.schema import load

    from oasr_cli import gate_view

    _check(update, why, assets_root, {"--junit": junit, "--report": report})
    reference = load(Path(pinned))
    roots = Roots(Path(pinned).parent, Path(assets_root) if assets_root else None)
    # Everything is measured before anything is written: a run that is broken off changes no record.
    outcomes = _run(select(reference.entries, only), roots)
    if update:
        outcomes = _record(Path(pinned), outcomes, why or "")
    else:
        outcomes = [judge(outcome, reference.tolerance_pct) for outcome in outcomes]
    code = exit_code(outcomes, strict_assets)
    found = {
        "passed": code == ExitCode.OK,
        "tolerance_pct": reference.tolerance_pct,
        "strict_assets": strict_assets,
        "entries": [as_json(outcome) for outcome in outcomes],
    }
    if json:
        console.result_json(found)
    else:
        gate_view.show(outcomes)
    gate_view.sum_up(outcomes, code)
    # Last: what took minutes must not be lost to a disk that is full, nor the code of a gate that failed.
    written = True
    if junit is not None:
        written &= _write(Path(junit), junit_xml(outcomes, strict_assets))
    if report is not None:
        text = jsonlib.dumps(found, ensure_ascii=False, indent=2) + "\n"
        written &= _write(Path(report), text.encode("utf-8"))
    raise typer.Exit(code if code != ExitCode.OK or written else ExitCode.BROKEN)


def exit_code(outcomes: Sequence[Outcome], strict_assets: bool) -> ExitCode:
    """What the outcomes make of the gate; one that measured nothing has not passed."""
    absent = [outcome for outcome in outcomes if outcome.verdict == "absent"]
    if any(outcome.failed for outcome in outcomes) or (absent and strict_assets):
        return ExitCode.GATE
    return ExitCode.BROKEN if len(absent) == len(outcomes) else ExitCode.OK


def _check(update: bool, why: str | None, assets_root: str | None, files: Mapping[str, str | None]) -> None:
    """Raise OptionsError for flags that contradict each other, and for places that cannot be used."""
    from oasr.bench import places

    if update and not (why and why.strip()):
        raise OptionsError("--update needs --why: the reason is kept in the records that change")
    if why is not None and not update:
        raise OptionsError("--why is kept by --update only: add --update or leave it out")
    if assets_root is not None and not Path(assets_root).is_dir():
        source = f"--assets-root (or {flag.ASSETS_VARIABLE})"
        raise OptionsError(f"{source}: expected a folder, found {assets_root!r}")
    for name, file in files.items():
        if file is not None:
            places.is_there(Path(file), name)


def _write(path: Path, data: bytes) -> bool:
    """Whether it could be written; if not, it is said why."""
    try:
        path.write_bytes(data)
    except OSError as error:
        console.report(OutputError(f"{path}: cannot be written: {error.strerror or error}"))
        return False
    return True


def select(entries: Sequence[Entry], only: Sequence[str] | None) -> list[Entry]:
    """The entries that a pattern of --only matches, in the order of the file; without patterns, all."""
    if not only:
        return list(entries)
    for pattern in only:
        if not any(fnmatchcase(entry.key, pattern) for entry in entries):
            known = ", ".join(entry.key for entry in entries)
            raise OptionsError(f"--only: no entry is called {pattern!r}; there are: {known}")
    return [entry for entry in entries if any(fnmatchcase(entry.key, pattern) for pattern in only)]


def _run(entries: Sequence[Entry], roots: Roots) -> list[Outcome]:
    from oasr.gate.runner import run_entry

    outcomes = []
    for number, entry in enumerate(entries, 1):
        with console.busy(f"{number}/{len(entries)} {entry.key}"):
            outcomes.append(run_entry(entry, roots))
    return outcomes


def _record(path: Path, outcomes: Sequence[Outcome], why: str) -> list[Outcome]:
    """Write the new records; the outcomes, which still hold the old ones, say what became of each."""
    from oasr.gate.record import update
    from oasr.gate.schema import load, save

    # Read again: measuring takes minutes, in which another run may have recorded other entries.
    updated, outcomes = update(load(path), outcomes, why, datetime.now(timezone.utc).date())
    save(updated, path)
    return outcomes
