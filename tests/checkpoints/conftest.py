"""A catalog of our own: packages and cache live in a temporary folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from oasr.checkpoints import catalog
from oasr.checkpoints.catalog_data import CatalogEntry, FileSum, HubSource, Piece


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of this test, and a hub cache that holds nothing."""
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "cache"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, bytes]], Path]:
    """`install(distribution, files)`: a distribution that importlib.metadata finds."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def make(distribution: str, files: dict[str, bytes]) -> Path:
        info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        for name, data in files.items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(data)
        return site

    return make


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CatalogEntry]:
    """`publish(name, files, pieces, hub)`: the catalog now holds this entry alone."""

    def make(
        name: str, files: dict[str, bytes], pieces: tuple[Piece, ...] = (), hub: HubSource | None = None
    ) -> CatalogEntry:
        sums = {file: FileSum(hashlib.sha256(data).hexdigest(), len(data)) for file, data in files.items()}
        entry = CatalogEntry(
            name, "a model", "MIT", "whisper", "en", 1, 300, "toy" if pieces else "", sums, pieces, hub
        )
        monkeypatch.setattr(catalog, "load_catalog", lambda: {name: entry})
        return entry

    return make
