"""Snapshots of the hub are compared with the hub's own digests before anything reads them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from oasr.checkpoints import catalog, hub, resolve
from oasr.checkpoints.catalog_data import HubSource
from oasr.errors import CheckpointError

COMMIT = "a" * 40
FILES = {
    "config.json": b'{"model_type": "whisper"}',
    "model.safetensors": b"weights " * 300,
    "tokenizer.json": b"{}",
}


def etag(name: str, data: bytes) -> str:
    """What the hub sends: sha256 of large files, git's blob digest of the others."""
    if name.endswith(".safetensors"):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


@pytest.fixture
def snapshot(cache, tmp_path: Path) -> Path:
    """A snapshot of owner/toy as huggingface_hub's cache holds it: links to blobs."""
    repo = tmp_path / "hub" / "models--owner--toy"
    folder = repo / "snapshots" / COMMIT
    for place in (repo / "blobs", repo / "refs", folder):
        place.mkdir(parents=True)
    (repo / "refs" / "main").write_text(COMMIT)
    for name, data in FILES.items():
        (repo / "blobs" / etag(name, data)).write_bytes(data)
        (folder / name).symlink_to(f"../../blobs/{etag(name, data)}")
    return folder


def blob(snapshot: Path, name: str) -> Path:
    return (snapshot / name).resolve()


def test_a_whole_snapshot_is_used(snapshot: Path, publish, monkeypatch) -> None:
    monkeypatch.setattr(hub, "download", lambda *_: pytest.fail("the network was asked"))
    publish("toy", {}, (), HubSource("owner/toy"))
    assert hub.fetch("owner/toy") == catalog.locate("toy") == catalog.pull("toy") == snapshot
    assert resolve("owner/toy").format == "huggingface"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["cut", "changed"])
def test_a_partial_or_changed_file_is_refused(
    snapshot: Path, publish, monkeypatch, name: str, change: str
) -> None:
    monkeypatch.setattr(hub, "download", lambda *_: pytest.fail("the network was asked"))
    publish("toy", {}, (), HubSource("owner/toy"))
    data = FILES[name]
    blob(snapshot, name).write_bytes(data[:-5] if change == "cut" else b"X" + data[1:])
    wanted = rf"{re.escape(name)}: expected the digest {etag(name, data)} that the hub gave with it"
    for use in (lambda: catalog.locate("toy"), lambda: catalog.pull("toy"), lambda: resolve("owner/toy")):
        with pytest.raises(CheckpointError, match=wanted):
            use()


def test_a_file_fetched_just_now_is_checked_too(snapshot: Path, publish, monkeypatch) -> None:
    publish("toy", {}, (), HubSource("owner/toy"))
    monkeypatch.setattr(hub, "cached", lambda *_: None)
    monkeypatch.setattr(hub, "download", lambda *_: snapshot)
    assert catalog.pull("toy") == snapshot
    blob(snapshot, "model.safetensors").write_bytes(b"something else")
    with pytest.raises(CheckpointError, match="expected the digest"):
        catalog.pull("toy")


def test_a_known_digest_goes_before_what_the_hub_says(snapshot: Path, publish) -> None:
    publish("toy", {}, (), HubSource("owner/toy", sha256={"model.safetensors": "0" * 64}))
    with pytest.raises(CheckpointError, match=r"model\.safetensors: expected sha256 0{64}, found \w{64}"):
        catalog.locate("toy")


def test_a_blob_that_leads_elsewhere_is_what_it_leads_to(snapshot: Path, tmp_path: Path, publish) -> None:
    publish("toy", {}, (), HubSource("owner/toy"))
    place, other = blob(snapshot, "model.safetensors"), tmp_path / "store" / "blobs" / "other"
    other.parent.mkdir(parents=True)
    other.write_bytes(FILES["model.safetensors"])
    place.unlink()
    place.symlink_to(other)  # a cache spread over disks
    assert catalog.locate("toy") == snapshot
    place.unlink()
    other.write_bytes(b"not the weights")
    place.symlink_to(other)
    with pytest.raises(CheckpointError, match="expected the digest"):
        catalog.locate("toy")


def test_a_download_that_was_never_finished_is_no_snapshot(snapshot: Path, publish) -> None:
    publish("toy", {}, (), HubSource("owner/toy"))
    place = blob(snapshot, "model.safetensors")
    place.rename(place.with_name(place.name + ".incomplete"))
    assert not catalog.installed("toy") and catalog.locate("toy") is None
