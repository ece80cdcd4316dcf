"""New records in place of old ones, with the reason for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import msgspec

from oasr.gate.runner import Measured, Outcome
from oasr.gate.schema import DECIMALS, Entry, Reference


def update(
    reference: Reference, outcomes: Sequence[Outcome], why: str, on: date
) -> tuple[Reference, list[Outcome]]:
    """Put what was measured in the place of the records that differ from it.

    An entry whose counts and assets are the recorded ones keeps its record, and with it the reason that was
    given for it: `why` explains what changed.

    Returns:
        The new file, and the outcomes with the verdicts "recorded" and "unchanged" where there were
        measurements; their entries still hold the old records.
    """
    entries = {entry.key: entry for entry in reference.entries}
    judged = []
    for outcome in outcomes:
        verdict = outcome.verdict
        if outcome.measured is not None:
            changed = _counts(outcome.measured)
            # The rate is left out: it follows from the counts.
            same = all(getattr(outcome.entry, name) == value for name, value in changed.items())
            verdict = "unchanged" if same else "recorded"
            if not same:
                entries[outcome.entry.key] = _recorded(outcome.entry, outcome.measured, why, on)
        judged.append(replace(outcome, verdict=verdict))
    return msgspec.structs.replace(reference, entries=tuple(entries.values())), judged


def _recorded(entry: Entry, measured: Measured, why: str, on: date) -> Entry:
    score = measured.score
    return msgspec.structs.replace(
        entry,
        **_counts(measured),
        error_rate_pct=round(100.0 * score.errors / score.ref_units, DECIMALS),
        recorded_with=dict(measured.recorded_with),
        recorded_on=on.isoformat(),
        why=why,
    )


def _counts(measured: Measured) -> dict[str, str | int]:
    """What makes two records the same: the assets and the counts."""
    score = measured.score
    return {
        "model_sha256": measured.assets.model_sha256,
        "manifest_sha256": measured.assets.manifest_sha256,
        "utterances": score.rows,
        "ref_units": score.ref_units,
        "substitutions": score.substitutions,
        "deletions": score.deletions,
        "insertions": score.insertions,
    }
