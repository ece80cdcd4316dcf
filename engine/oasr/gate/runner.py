"""Running entries, and what their results mean against the records."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from oasr.bench.environment import describe
from oasr.config import EngineConfig
from oasr.engine import Engine
from oasr.errors import ManifestError, ManifestRowError, RowError
from oasr.gate.assets import Assets, Roots, absent, locate
from oasr.gate.schema import Entry
from oasr.manifest import open_inputs
from oasr.scoring.wer import Rules, Score
from oasr.types import RequestOutput, RowFailure, Utterance

logger = logging.getLogger(__name__)

FAILURES = ("worse", "units differ", "assets differ", "not recorded", "broken")
"""Verdicts that fail the gate; the others are "passed", "better" and "absent"."""
# Two rates over the same units differ by whole errors, which is far more than this.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of an entry gave.

    Attributes:
        score: all rows, pooled.
        assets: what was run.
        recorded_with: versions and machine, as an entry records them.
        seconds: wall time, loading included.
    """

    score: Score
    assets: Assets
    recorded_with: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One entry, its verdict, and the reason in words where there is something to say.

    Between `run_entry` and `judge` the verdict is "measured".
    """

    entry: Entry
    verdict: str
    reason: str = ""
    measured: Measured | None = None

    @property
    def failed(self) -> bool:
        """The gate fails over it, whatever is thought of absent assets."""
        return self.verdict in FAILURES

    @property
    def difference(self) -> float | None:
        """Measured rate minus recorded one, in percentage points."""
        old = None if self.entry.record is None else self.entry.record.rate
        new = None if self.measured is None else self.measured.score.rate
        return None if old is None or new is None else new - old


def run_entry(entry: Entry, roots: Roots) -> Outcome:
    """Measure one entry; what goes wrong becomes its verdict, so that the others still run."""
    lacking = absent(entry, roots)
    if lacking:
        return Outcome(entry, "absent", f"not on this machine: {', '.join(lacking)}")
    try:
        return Outcome(entry, "measured", measured=measure(entry, locate(entry, roots)))
    except Exception as error:  # also a bug: the other entries may show how far it reaches
        logger.debug("entry %s broke", entry.key, exc_info=True)
        return Outcome(entry, "broken", str(error) or type(error).__name__)


def measure(entry: Entry, assets: Assets) -> Measured:
    """Transcribe the manifest as the entry says, and score it.

    Raises:
        OasrError: the model or the list cannot be used, a row failed or has no reference, or all are empty.
    """
    started = time.perf_counter()
    inputs = open_inputs([str(assets.manifest)])
    inputs.check_ids()
    config = EngineConfig(
        model=assets.model,
        device=entry.device,
        dtype=entry.dtype,
        decode_method=entry.decode_method,
        decode_options=entry.decode_options,
        max_batch_size=entry.batch,
    )
    # The entry's rules for every row, whatever language it has: a record is one figure.
    rules = Rules(entry.normalizer, entry.metric)
    with Engine(config) as engine:
        rows = list(engine.stream(inputs))
        # Asked while the engine is open: it knows the device and the type that `auto` became.
        environment = describe(engine)
    scores = [rules.score(*_texts(row, output)) for row, output in rows]
    # From the first one on: scores do not add up with 0.
    score = sum(scores[1:], scores[0])
    if score.rate is None:
        raise ManifestError(f"{assets.manifest}: every reference is empty under {entry.normalizer}: no rate")
    recorded_with = {
        "oasr": str(environment["oasr"]),
        "torch": str(environment["packages"]["torch"]),
        "dtype": engine.dtype,
        "processor": str(environment["gpu"] or environment["cpu"]),
    }
    return Measured(score, assets, recorded_with, time.perf_counter() - started)


def judge(outcome: Outcome, tolerance_pct: float) -> Outcome:
    """The verdict on a measured entry; any other outcome as it is."""
    entry, measured = outcome.entry, outcome.measured
    if measured is None:
        return outcome
    if entry.record is None:
        return replace(outcome, verdict="not recorded", reason="record it with --update --why REASON")
    # Before the rates: over other rows or weights they mean nothing.
    changed = _changed(entry, measured.assets)
    if changed:
        return replace(outcome, verdict="assets differ", reason=changed)
    if measured.score.ref_units != entry.ref_units:
        reason = (
            f"expected {entry.ref_units} reference units, found {measured.score.ref_units}: references or "
            "normaliser changed, so the rates cannot be compared"
        )
        return replace(outcome, verdict="units differ", reason=reason)
    difference = outcome.difference or 0.0
    if difference > tolerance_pct + _ROUNDING:
        reason = f"{difference:+.2f} points, more than the tolerance of {tolerance_pct:g}"
        return replace(outcome, verdict="worse", reason=reason)
    if difference < -tolerance_pct - _ROUNDING:
        reason = f"{difference:+.2f} points; tighten the record with --only {entry.key} --update --why REASON"
        return replace(outcome, verdict="better", reason=reason)
    return replace(outcome, verdict="passed")


def _changed(entry: Entry, assets: Assets) -> str:
    """Which digest is not the recorded one; empty when both are."""
    pairs = (
        ("model", entry.model_sha256, assets.model_sha256),
        ("manifest", entry.manifest_sha256, assets.manifest_sha256),
    )
    return "; ".join(
        f"{what}: expected sha256 {wanted}, found {found}" for what, wanted, found in pairs if wanted != found
    )


def _texts(row: Utterance | RowFailure, output: RequestOutput) -> tuple[str, str]:
    """Reference and transcript; a gate that forgave a lost row would be none."""
    if not output.ok or isinstance(row, RowFailure):
        raise RowError(f"row {row.id} failed: {output.error_stage}: {output.error_message}")
    if row.text is None:
        raise ManifestRowError(f"{row.origin} (id={row.id}): expected a reference under text, found none")
    return row.text, output.text or ""
