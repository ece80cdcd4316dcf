from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from helpers.gate_entries import entry, measured, outcome
from oasr.gate.junit import as_json, junit_xml
from oasr.gate.runner import Outcome, judge


@pytest.fixture
def outcomes() -> list[Outcome]:
    return [
        judge(outcome(measured(), entry(key="good")), 0.3),
        judge(outcome(measured(13), entry(key="bad")), 0.3),
        judge(outcome(measured(7), entry(key="better")), 0.3),
        Outcome(entry(key="broken"), "broken", "a < b & \x1b[31m\0 \ud800 字"),
        Outcome(entry(key="away"), "absent", "not on this machine: model x"),
    ]


@pytest.mark.parametrize("strict", [False, True])
def test_each_entry_is_a_case_and_the_counts_add_up(outcomes, strict):
    (suite,) = ElementTree.fromstring(junit_xml(outcomes, strict))
    tags = {case.get("name"): [child.tag for child in case if child.tag != "system-out"] for case in suite}
    assert tags == {
        "good": [], "bad": ["failure"], "better": [], "broken": ["error"],
        "away": ["error"] if strict else ["skipped"],
    }  # fmt: skip
    numbers = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert numbers == {
        "tests": "5", "failures": "1", "errors": "2" if strict else "1", "skipped": "0" if strict else "1",
        "time": "3.750",
    }  # fmt: skip


def test_messages_survive_what_xml_cannot_carry(outcomes):
    (suite,) = ElementTree.fromstring(junit_xml(outcomes, False))
    broken = suite.find("testcase[@name='broken']/error")
    assert broken.get("message") == "broken: a < b & \ufffd[31m\ufffd \ufffd 字"
    assert suite.find("testcase[@name='bad']/failure").get("type") == "worse"
    assert "recorded WER 5.00 %" in suite.find("testcase[@name='bad']/system-out").text
    assert "measured WER 6.50 %" in suite.find("testcase[@name='bad']/system-out").text


def test_json_has_both_figures(outcomes):
    told = json.loads(json.dumps([as_json(found) for found in outcomes[:2]]))
    assert told[1] == {
        "key": "bad", "verdict": "worse", "failed": True, "reason": told[1]["reason"], "difference_pct": 1.5,
        "recorded": {"rate": 5.0, "substitutions": 6, "deletions": 3, "insertions": 1, "reference_units": 200,
                     "normalizer": "english", "rows": 3},
        "measured": {"rate": 6.5, "substitutions": 9, "deletions": 3, "insertions": 1, "reference_units": 200,
                     "normalizer": "english", "rows": 3},
        "measured_with": {"oasr": "9.9"}, "seconds": 1.25,
    }  # fmt: skip
    away = as_json(replace(outcomes[4], entry=entry(key="away")))
    assert (away["failed"], away["measured"], away["difference_pct"]) == (False, None, None)
