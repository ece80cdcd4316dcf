"""A gate is worth what it catches: two real mistakes of Whisper front ends must fail it.

Both give transcripts that look fine at a glance. The records here are made in the test, over some rows of
the shipped manifest; the pinned ones over all rows are checked by `ci/test.sh`.
"""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path

import pytest
import torch
from helpers.gate_entries import unrecorded
from oasr.features import whisper_logmel
from oasr.gate.assets import Roots
from oasr.gate.record import update
from oasr.gate.runner import judge, run_entry
from oasr.gate.schema import Entry, Reference, load

# The rows in which the missing clamp costs a word, in float32 as in int16, and two others. Over all 60 rows
# it costs 4 words of 959, which is 0.42 points; the HTK filters cost 32.
ROWS = (0, 9, 12, 13, 20, 40, 46)


def htk_filters(n_mels: int, n_fft: int, sample_rate: int) -> torch.Tensor:
    """Triangles on the HTK scale, 2595 log10(1 + f / 700), of height one: (n_fft // 2 + 1, n_mels)."""
    bins = torch.linspace(0, sample_rate / 2, n_fft // 2 + 1, dtype=torch.float64)
    top = 2595 * math.log10(1 + sample_rate / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, top, n_mels + 2, dtype=torch.float64) / 2595) - 1)
    low, peak, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (bins[:, None] - low) / (peak - low), (high - bins[:, None]) / (high - peak)
    return torch.minimum(rising, falling).clamp_min(0).float()


@pytest.fixture(scope="module")
def healthy(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Entry, Roots, float]:
    """An entry over some rows of the shipped manifest, recorded with the engine as it is."""
    folder = tmp_path_factory.mktemp("gate")
    shipped = repo_root / "manifests" / "gate.jsonl"
    rows = [json.loads(line) for line in shipped.read_text("utf-8").splitlines()]
    lines = [json.dumps({**rows[i], "audio": str(shipped.parent / rows[i]["audio"])}) for i in ROWS]
    (folder / "list.jsonl").write_text("\n".join(lines), "utf-8")
    tolerance = load(repo_root / "ci" / "wer-reference.json").tolerance_pct
    entry, roots = unrecorded(dtype="auto", batch=16), Roots(folder)
    (outcome,) = [run_entry(entry, roots)]
    updated, _ = update(Reference(tolerance, (entry,)), [outcome], "the engine as it is", date(2026, 1, 1))
    return updated.entries[0], roots, tolerance


@pytest.mark.weights
@pytest.mark.parametrize(
    ("name", "bug"),
    [("slaney_filters", htk_filters), ("_DYNAMIC_RANGE", math.inf)],
    ids=["HTK mel filters", "no dynamic range clamp"],
)
def test_a_planted_feature_bug_fails_the_gate(name, bug, healthy, monkeypatch):
    entry, roots, tolerance = healthy
    monkeypatch.setattr(whisper_logmel, name, bug)
    found = judge(run_entry(entry, roots), tolerance)
    assert (found.verdict, found.failed) == ("worse", True), found.reason
    assert found.difference is not None and found.difference > 3 * tolerance
