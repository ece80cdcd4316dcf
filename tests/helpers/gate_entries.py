"""Entries of pinned error rates and measurements of them, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oasr.gate.assets import Assets
from oasr.gate.runner import Measured, Outcome
from oasr.gate.schema import Entry
from oasr.scoring.wer import Score

MODEL, MANIFEST = "a" * 64, "b" * 64
PLAN = {
    "key": "toy", "model": "tiny.en", "manifest": "list.jsonl", "decode_method": "aed", "decode_options": {},
    "device": "cpu", "dtype": "float32", "batch": 4, "metric": "wer", "normalizer": "english",
}  # fmt: skip
RECORD = {
    "model_sha256": MODEL, "manifest_sha256": MANIFEST, "utterances": 3, "ref_units": 200, "substitutions": 6,
    "deletions": 3, "insertions": 1, "error_rate_pct": 5.0, "recorded_with": {"oasr": "0.0"},
    "recorded_on": "2026-01-31", "why": "first record",
}  # fmt: skip


def fields(**changes: Any) -> dict[str, Any]:
    """A recorded entry as the file has it; a field given as None is left out."""
    return {key: value for key, value in (PLAN | RECORD | changes).items() if value is not None}


def entry(**changes: Any) -> Entry:
    """The same as an Entry."""
    return Entry(**fields(**changes))


def unrecorded(**changes: Any) -> Entry:
    """An entry that was never recorded."""
    return Entry(**(PLAN | changes))


def measured(errors: int = 10, units: int = 200, model: str = MODEL, manifest: str = MANIFEST) -> Measured:
    """A run with `errors` errors: the recorded ones first, then substitutions."""
    score = Score(errors - 4, 3, 1, units, "wer", "english", 3)
    return Measured(score, Assets("tiny.en", model, Path("list.jsonl"), manifest), {"oasr": "9.9"}, 1.25)


def outcome(what: Measured | None = None, of: Entry | None = None, verdict: str = "measured") -> Outcome:
    """What `run_entry` gives."""
    return Outcome(of or entry(), verdict, measured=what)
