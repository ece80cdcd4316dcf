from __future__ import annotations

from datetime import date

from helpers.gate_entries import entry, measured, outcome, unrecorded
from oasr.gate.record import update
from oasr.gate.runner import judge
from oasr.gate.schema import Reference, load, save

DAY = date(2026, 3, 1)


def test_a_new_record_holds_what_was_measured_and_why(tmp_path):
    reference = Reference(0.3, (entry(), unrecorded(key="new"), entry(key="other")))
    outcomes = [outcome(measured(13)), outcome(measured(7), reference.entries[1])]
    updated, judged = update(reference, outcomes, "new tokenizer", DAY)
    assert [found.verdict for found in judged] == ["recorded", "recorded"]
    assert judged[0].difference == 1.5
    assert updated.entries[0] == entry(
        substitutions=9, error_rate_pct=6.5, recorded_with={"oasr": "9.9"}, recorded_on="2026-03-01",
        why="new tokenizer",
    )  # fmt: skip
    assert updated.entries[1].record == measured(7).score and updated.entries[1].why == "new tokenizer"
    assert updated.entries[2] == entry(key="other")
    save(updated, tmp_path / "r.json")
    assert load(tmp_path / "r.json") == updated
    assert judge(outcome(measured(13), updated.entries[0]), 0.0).verdict == "passed"


def test_what_did_not_change_keeps_its_record_and_its_reason():
    reference = Reference(0.3, (entry(), entry(key="lost")))
    outcomes = [outcome(measured()), outcome(of=reference.entries[1], verdict="absent")]
    updated, judged = update(reference, outcomes, "new tokenizer", DAY)
    assert updated == reference
    assert [found.verdict for found in judged] == ["unchanged", "absent"]


def test_new_assets_make_a_new_record_even_with_the_old_counts():
    updated, _ = update(
        Reference(0.3, (entry(),)), [outcome(measured(manifest="c" * 64))], "shorter list", DAY
    )
    assert updated.entries[0].manifest_sha256 == "c" * 64 and updated.entries[0].why == "shorter list"
