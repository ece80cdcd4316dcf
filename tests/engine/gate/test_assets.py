from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from helpers.gate_entries import entry
from oasr.checkpoints import catalog
from oasr.gate.assets import Roots, absent, locate


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    for folder in ("ci", "large"):
        (tmp_path / folder).mkdir()
    (tmp_path / "beside.jsonl").write_text("beside")
    (tmp_path / "large" / "far.jsonl").write_text("far")
    return Roots(tmp_path / "ci", tmp_path / "large")


def test_paths_start_at_the_file_and_then_at_the_assets_root(roots):
    assert roots.find("../beside.jsonl").read_text() == "beside"
    assert roots.find("far.jsonl").read_text() == "far"
    assert roots.find("near.jsonl") is None
    assert Roots(roots.file).find("far.jsonl") is None
    (roots.file / "far.jsonl").write_text("near")
    assert roots.find("far.jsonl").read_text() == "near"
    assert roots.find(str(roots.assets / "far.jsonl")).read_text() == "far"


def test_a_model_that_is_not_here_is_absent_and_is_not_fetched(roots, monkeypatch):
    monkeypatch.setattr(catalog, "pull", lambda name: pytest.fail(f"fetched {name}"))
    monkeypatch.setattr("oasr.checkpoints.hub.download", lambda *_: pytest.fail("fetched"))
    monkeypatch.setattr(catalog, "installed", lambda name: False)
    for name in ("tiny.en", "somebody/something", "somebody/something@main", "models/none"):
        assert absent(entry(model=name, manifest="far.jsonl"), roots) == [f"model {name}"]


@pytest.mark.weights
def test_assets_come_with_their_digests(roots, tiny_en):
    found = locate(entry(manifest="far.jsonl"), roots)
    assert found.model == "tiny.en" and found.manifest == roots.assets / "far.jsonl"
    assert found.model_sha256 == catalog.get("tiny.en").files["model.bin"].sha256
    assert found.manifest_sha256 == hashlib.sha256(b"far").hexdigest()


@pytest.mark.weights
def test_a_checkpoint_folder_is_found_like_a_manifest(roots, tiny_en_dir):
    (roots.assets / "models").mkdir()
    (roots.assets / "models" / "mine").symlink_to(tiny_en_dir)
    wanted = entry(model="models/mine", manifest="../beside.jsonl")
    assert absent(wanted, roots) == []
    assert locate(wanted, roots).model_sha256 == catalog.get("tiny.en").files["model.bin"].sha256
