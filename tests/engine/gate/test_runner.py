from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.gate_entries import MANIFEST, MODEL, entry, measured, outcome, unrecorded
from oasr.errors import CheckpointError
from oasr.gate import runner
from oasr.gate.assets import Assets, Roots
from oasr.gate.runner import judge, run_entry

TOLERANCE = 1.0


@pytest.mark.parametrize(
    ("run", "verdict", "failed"),
    [
        (measured(10), "passed", False),
        (measured(12), "passed", False),  # 6.0 %: worse by the tolerance, not by more
        (measured(8), "passed", False),
        (measured(13), "worse", True),
        (measured(7), "better", False),
        (measured(10, units=201), "units differ", True),
        (measured(10, model="c" * 64), "assets differ", True),
        (measured(10, manifest="c" * 64), "assets differ", True),
    ],
)
def test_the_verdict_follows_from_rate_units_and_assets(run, verdict, failed):
    found = judge(outcome(run), TOLERANCE)
    assert (found.verdict, found.failed) == (verdict, failed)
    assert bool(found.reason) == (verdict != "passed")


def test_reasons_say_what_was_expected_and_found():
    assert judge(outcome(measured(13)), TOLERANCE).reason == "+1.50 points, more than the tolerance of 1"
    hint = judge(outcome(measured(7)), TOLERANCE).reason
    assert hint == f"-1.50 points; tighten the record with --only {entry().key} --update --why REASON"
    assert "expected 200 reference units, found 201" in judge(outcome(measured(units=201)), TOLERANCE).reason
    reason = judge(outcome(measured(model="c" * 64)), TOLERANCE).reason
    assert reason == f"model: expected sha256 {MODEL}, found {'c' * 64}"


def test_tolerance_zero_still_passes_the_same_rate():
    thirds = entry(ref_units=3, substitutions=1, deletions=0, insertions=0, error_rate_pct=33.3333)
    run = measured()
    same = runner.Measured(thirds.record, run.assets, {}, 0.0)
    assert judge(outcome(same, thirds), 0.0).verdict == "passed"


def test_an_entry_without_a_record_fails_until_it_is_recorded():
    found = judge(outcome(measured(), unrecorded()), TOLERANCE)
    assert (found.verdict, found.failed, found.difference) == ("not recorded", True, None)


def test_what_was_not_measured_keeps_its_verdict():
    for verdict in ("absent", "broken"):
        assert judge(outcome(verdict=verdict), TOLERANCE).verdict == verdict


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    return Assets("tiny.en", MODEL, tmp_path / "list.jsonl", MANIFEST)


def test_absent_assets_are_listed_and_nothing_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "measure", lambda *_: pytest.fail("ran"))
    monkeypatch.setattr("oasr.gate.assets._has_gpu", lambda: False)
    found = run_entry(entry(model="no/such", manifest="no.jsonl", device="cuda"), Roots(tmp_path))
    assert (found.verdict, found.failed) == ("absent", False)
    assert found.reason == "not on this machine: model no/such, manifest no.jsonl, an NVIDIA GPU"


@pytest.mark.parametrize(
    "error", [CheckpointError("damaged"), RuntimeError("out of memory"), ZeroDivisionError()]
)
def test_an_entry_that_breaks_says_so_and_does_not_stop_the_others(error, assets, monkeypatch):
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(runner, "absent", lambda *_: [])
    monkeypatch.setattr(runner, "locate", lambda *_: assets)
    monkeypatch.setattr(runner, "measure", broken)
    found = run_entry(entry(), Roots(Path()))
    assert (found.verdict, found.failed) == ("broken", True)
    assert found.reason == (str(error) or "ZeroDivisionError")


@pytest.mark.weights
def test_a_measurement_is_the_score_of_what_the_engine_hears(assets, demo_manifest, monkeypatch):
    from oasr import Engine
    from oasr.scoring.wer import score_row

    rows = [json.loads(line) for line in demo_manifest.read_text("utf-8").splitlines()][:2]
    lines = [json.dumps({**row, "audio": str(demo_manifest.parent / row["audio"])}) for row in rows]
    assets.manifest.write_text("\n".join(lines))
    found = runner.measure(entry(batch=2), assets)
    with Engine(model="tiny.en", dtype="float32", device="cpu") as engine:
        heard = list(engine.transcribe([demo_manifest.parent / row["audio"] for row in rows]))
    first, second = (score_row(r["text"], h.text, "en") for r, h in zip(rows, heard, strict=True))
    assert found.score == first + second
    assert found.recorded_with["dtype"] == "float32" and found.seconds > 0
    assets.manifest.write_text(json.dumps({"id": "x", "audio": "no-such.wav", "text": "t"}))
    lost = outcome_of_broken(assets, monkeypatch)
    assert lost.verdict == "broken" and "row x failed: audio: " in lost.reason
    assets.manifest.write_text(lines[0].replace('"text"', '"words"'))
    assert "expected a reference under text" in outcome_of_broken(assets, monkeypatch).reason


def outcome_of_broken(assets: Assets, monkeypatch: pytest.MonkeyPatch) -> runner.Outcome:
    monkeypatch.setattr(runner, "absent", lambda *_: [])
    monkeypatch.setattr(runner, "locate", lambda *_: assets)
    return run_entry(entry(), Roots(Path()))
