"""`oasr gate`: which entries run, what the exit code says, what is written. Nothing is transcribed here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from helpers.gate_entries import PLAN, fields, measured
from oasr.errors import CheckpointError
from oasr.gate import runner
from oasr.gate.schema import Entry, load

from oasr_cli import console


@pytest.fixture
def pinned(tmp_path: Path) -> Callable[..., Path]:
    def write(*entries: dict[str, Any]) -> Path:
        path = tmp_path / "wer-reference.json"
        path.write_text(json.dumps({"tolerance_pct": 0.5, "entries": entries}))
        return path

    return write


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Key → number of errors (of 10 recorded), an exception, or None = the assets are absent."""
    results: dict[str, Any] = {}

    def measure(entry: Entry, assets: object) -> runner.Measured:
        found = results[entry.key]
        if isinstance(found, Exception):
            raise found
        return measured(found)

    monkeypatch.setattr(runner, "measure", measure)
    monkeypatch.setattr(runner, "locate", lambda entry, roots: None)
    lacking = lambda entry, roots: ["model x"] if results[entry.key] is None else []  # noqa: E731
    monkeypatch.setattr(runner, "absent", lacking)
    monkeypatch.delenv("OASR_SPEECH_DIR", raising=False)
    return results


@pytest.mark.parametrize(
    ("results", "flags", "code", "said"),
    [
        ({"a": 10, "b": 11}, [], 0, "gate passed: 2 passed"),
        ({"a": 10, "b": 8}, [], 0, "gate passed: 1 passed, 1 better"),
        ({"a": 10, "b": 12}, [], 4, "gate failed: 1 passed, 1 worse"),
        ({"a": 10, "b": CheckpointError("damaged")}, [], 4, "gate failed: 1 passed, 1 broken"),
        ({"a": 10, "b": None}, [], 0, "gate passed: 1 passed, 1 absent"),
        ({"a": 10, "b": None}, ["--strict-assets"], 4, "gate failed: 1 passed, 1 absent"),
        ({"a": None, "b": None}, [], 1, "gate measured nothing: 2 absent"),
        ({"a": None, "b": None}, ["--strict-assets"], 4, "gate failed: 2 absent"),
        ({"a": 10, "b": 12}, ["--only", "a"], 0, "gate passed: 1 passed"),
    ],
)
def test_the_exit_code_is_the_verdict(oasr, pinned, heard, results, flags, code, said):
    heard.update(results)
    done = oasr("gate", pinned(fields(key="a"), fields(key="b")), *flags)
    assert (done.code, done.err.strip()) == (code, said)


def test_the_table_shows_both_rates_and_every_reason(oasr, pinned, heard):
    heard.update(good=10, bad=13, away=None)
    done = oasr("gate", pinned(fields(key="good"), fields(key="bad"), fields(key="away")))
    assert done.out.splitlines() == [
        "key\tverdict\trecord %\tnow %\tpoints\tS/D/I\tunits\ts",
        "good\tpassed\t5.00\t5.00\t+0.00\t6/3/1\t200\t1.2",
        "bad\tworse\t5.00\t6.50\t+1.50\t9/3/1\t200\t1.2",
        "away\tabsent\t5.00\t\t\t6/3/1\t200\t",
        "bad: worse: +1.50 points, more than the tolerance of 0.5",
        "away: absent: not on this machine: model x",
    ]


def test_on_a_terminal_the_table_fits_and_keeps_its_words(oasr, pinned, heard, monkeypatch):
    heard["a-rather-long-key/of-a-model/on-a-list"] = 13
    monkeypatch.setattr(console, "stdout_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")
    done = oasr("gate", pinned(fields(key="a-rather-long-key/of-a-model/on-a-list")))
    assert max(map(len, done.out.splitlines())) <= 70
    for word in ("worse", "5.00", "6.50", "+1.50", "9/3/1", "200"):
        assert word in done.out


def test_reports_are_written_beside_the_table(oasr, pinned, heard, tmp_path):
    heard.update(a=10, b=12)
    path = pinned(fields(key="a"), fields(key="b"))
    files = ["--junit", tmp_path / "gate.xml", "--report", tmp_path / "gate.json"]
    done = oasr("gate", path, *files)
    assert done.code == 4 and "worse" in done.out
    (suite,) = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    told = json.loads((tmp_path / "gate.json").read_text())
    assert (told["passed"], told["tolerance_pct"], told["strict_assets"]) == (False, 0.5, False)
    assert [entry["verdict"] for entry in told["entries"]] == ["passed", "worse"]
    done = oasr("gate", path, "--json", *files)
    assert json.loads(done.out) == told


@pytest.mark.parametrize(("errors", "code"), [(12, 4), (10, 1)])
def test_a_report_that_cannot_be_written_costs_neither_table_nor_verdict(
    oasr, pinned, heard, monkeypatch, tmp_path, errors, code
):
    xml, told = tmp_path / "gate.xml", tmp_path / "gate.json"
    heard.update(a=errors)
    # Behind the check of the flags: a folder that takes the name while the gate measures.
    monkeypatch.setattr(runner, "absent", lambda entry, roots: xml.mkdir() or [])
    done = oasr("gate", pinned(fields(key="a")), "--junit", xml, "--report", told)
    assert done.code == code and f"{xml}: cannot be written: Is a directory" in done.err
    assert done.out.startswith("key\tverdict") and f"gate {'failed' if code == 4 else 'passed'}" in done.err
    assert json.loads(told.read_text())["passed"] is (code == 1)


def test_only_takes_keys_and_globs_in_the_order_of_the_file(oasr, pinned, heard):
    heard.update(dict.fromkeys(("tiny-a", "tiny-b", "base-a"), 10))
    path = pinned(*(fields(key=key) for key in heard))
    keys = lambda *flags: [e["key"] for e in json.loads(oasr("gate", path, "--json", *flags).out)["entries"]]  # noqa: E731
    assert keys() == ["tiny-a", "tiny-b", "base-a"]
    assert keys("--only", "base-a", "--only", "tiny-*") == ["tiny-a", "tiny-b", "base-a"]
    assert keys("--only", "*-a") == ["tiny-a", "base-a"]
    done = oasr("gate", path, "--only", "*-a", "--only", "large")
    assert done.code == 2
    assert "--only: no entry is called 'large'; there are: tiny-a, tiny-b, base-a" in done.err


def test_update_records_what_changed_and_why(oasr, pinned, heard):
    heard.update(same=10, worse=13, new=8, away=None, bad=CheckpointError("damaged"))
    path = pinned(
        fields(key="same"), fields(key="worse"), {**PLAN, "key": "new"}, fields(key="away"), fields(key="bad")
    )
    before = {entry.key: entry for entry in load(path).entries}
    done = oasr("gate", path, "--update", "--why", "a better clamp")
    assert done.code == 4 and "gate failed: 1 unchanged, 2 recorded, 1 absent, 1 broken" in done.err
    after = {entry.key: entry for entry in load(path).entries}
    assert [key for key in before if after[key] != before[key]] == ["worse", "new"]
    assert {after["worse"].why, after["new"].why} == {"a better clamp"}
    assert after["worse"].error_rate_pct == 6.5
    heard["bad"] = 10
    assert oasr("gate", path).code == 0


def test_a_record_made_meanwhile_by_another_run_is_kept(oasr, pinned, heard, monkeypatch):
    path = pinned(fields(key="a"), fields(key="b"))

    def measure_while_another_records(entry, assets):
        pinned(fields(key="a"), fields(key="b", why="by another run"), fields(key="new"))
        return measured(13)

    heard.update(a=13)
    monkeypatch.setattr(runner, "measure", measure_while_another_records)
    assert oasr("gate", path, "--only", "a", "--update", "--why", "mine").code == 0
    assert [(e.key, e.why) for e in load(path).entries] == [
        ("a", "mine"), ("b", "by another run"), ("new", "first record"),
    ]  # fmt: skip


def test_an_entry_that_was_never_recorded_fails(oasr, pinned, heard):
    heard.update(toy=10)
    done = oasr("gate", pinned(PLAN))
    assert done.code == 4 and "toy: not recorded: record it with --update --why REASON" in done.out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--update"], "--update needs --why"),
        (["--update", "--why", " "], "--update needs --why"),
        (["--why", "x"], "--why is kept by --update only"),
        (["--assets-root", "/no/such"], "--assets-root (or OASR_SPEECH_DIR): expected a folder"),
        (["--junit", "/no/such/gate.xml"], "--junit: /no/such: there is no such folder"),
        (["--report", "/no/such/gate.json"], "--report: /no/such: there is no such folder"),
        (["--junit", "/"], "--junit: /: expected an ordinary file"),
        (["--report", "/"], "--report: /: expected an ordinary file"),
    ],
)
def test_flags_that_cannot_be_used_stop_before_anything_runs(oasr, pinned, heard, flags, said):
    done = oasr("gate", pinned(fields()), *flags)
    assert done.code == 2 and said in done.err and done.out == ""


def test_a_malformed_file_is_a_usage_error(oasr, pinned, tmp_path):
    done = oasr("gate", pinned(fields(batch=0)))
    assert done.code == 2 and "entry 1 (toy): Expected `int` >= 1 - at `$.batch`" in done.err
    assert oasr("gate", tmp_path / "none.json").code == 2


def test_the_assets_root_may_come_from_the_environment(oasr, pinned, heard, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(runner, "absent", lambda entry, roots: seen.append(roots.assets) or ["x"])
    monkeypatch.setenv("OASR_SPEECH_DIR", str(tmp_path))
    assert oasr("gate", pinned(fields())).code == 1
    assert oasr("gate", pinned(fields()), "--assets-root", tmp_path.parent).code == 1
    assert seen == [tmp_path, tmp_path.parent]
