"""What a gate found as JUnit XML, which CI servers show, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from oasr.gate.runner import Outcome
from oasr.scoring.wer import Score

# XML 1.0 has no way to write these, escaped or not (section 2.2).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(outcomes: Sequence[Outcome], strict_assets: bool) -> bytes:
    """One test case an entry; an absent one is skipped, or an error under `strict_assets`."""
    suite = ElementTree.Element("testsuite", name="oasr gate", tests=str(len(outcomes)))
    counts = dict.fromkeys(("failures", "errors", "skipped"), 0)
    seconds = 0.0
    for outcome in outcomes:
        took = outcome.measured.seconds if outcome.measured else 0.0
        seconds += took
        case = ElementTree.SubElement(suite, "testcase", classname="oasr.gate", name=outcome.entry.key)
        case.set("time", f"{took:.3f}")
        tag = _tag(outcome, strict_assets)
        if tag:
            counts[f"{tag}s" if tag != "skipped" else tag] += 1
            text = _printable(f"{outcome.verdict}: {outcome.reason}")
            ElementTree.SubElement(case, tag, message=text, type=outcome.verdict)
        ElementTree.SubElement(case, "system-out").text = _printable(describe(outcome))
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", f"{seconds:.3f}")
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def as_json(outcome: Outcome) -> dict[str, Any]:
    """One entry's verdict with its figures: `recorded` and `measured` counts, rates in percent."""
    measured = outcome.measured
    return {
        "key": outcome.entry.key,
        "verdict": outcome.verdict,
        "failed": outcome.failed,
        "reason": outcome.reason,
        "difference_pct": None if outcome.difference is None else round(outcome.difference, 4),
        "recorded": _figures(outcome.entry.record),
        "measured": None if measured is None else _figures(measured.score),
        "measured_with": None if measured is None else dict(measured.recorded_with),
        "seconds": None if measured is None else round(measured.seconds, 3),
    }


def describe(outcome: Outcome) -> str:
    """Recorded and measured figures in words."""
    record, measured = outcome.entry.record, outcome.measured
    old = "never recorded" if record is None else f"recorded {record.describe()}"
    return f"{old}; {'not measured' if measured is None else f'measured {measured.score.describe()}'}"


def _figures(score: Score | None) -> dict[str, Any] | None:
    return None if score is None else {**score.as_row()[score.metric], "rows": score.rows}


def _tag(outcome: Outcome, strict_assets: bool) -> str | None:
    """JUnit's word for the verdict; None = the case passed."""
    if outcome.verdict == "absent":
        return "error" if strict_assets else "skipped"
    # JUnit tells a test that judged ("failure") from one that could not be carried out ("error").
    if outcome.verdict == "broken":
        return "error"
    return "failure" if outcome.failed else None


def _printable(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
