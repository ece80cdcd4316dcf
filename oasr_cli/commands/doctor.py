"""`oasr doctor`: what this machine has, and the command that mends what is missing."""

from __future__ import annotations

from dataclasses import asdict

import typer

from oasr_cli import arguments as flag
from oasr_cli import console
from oasr_cli.console import ExitCode

_STYLES = {"ok": "green", "warning": "yellow", "fails": "bold red"}


def doctor(model: flag.Model = "tiny.en", json: flag.AsJson = False) -> None:
    """Check versions, devices, compiled code, codecs, models, disk and memory.

    Exit code: 0 transcribing with the model works, 1 it does not.
    """
    console.setup_logging("error")
    from oasr.doctor import examine

    findings = []
    for finding in examine(model):
        findings.append(finding)
        if json:
            continue
        console.result_spans(
            ((f"{finding.status:8}", _STYLES[finding.status]), (f"{finding.name}: {finding.found}", ""))
        )
        if finding.mend:
            console.result_spans(((f"{'':8}mend: {finding.mend}", "bold"),))
    works = all(finding.status != "fails" for finding in findings)
    if json:
        console.result_json({"works": works, "findings": [asdict(finding) for finding in findings]})
    if not works:
        raise typer.Exit(ExitCode.BROKEN)
