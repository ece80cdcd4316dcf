"""The note of checked files: it saves a hash, never hides a change."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from oasr.checkpoints import cache as module


@pytest.fixture
def hashed(monkeypatch) -> list[Path]:
    """Files that were really hashed."""
    seen: list[Path] = []
    real = module.sha256_of
    monkeypatch.setattr(module, "sha256_of", lambda path: seen.append(path) or real(path))
    return seen


def test_a_file_is_hashed_once_until_it_changes(cache, tmp_path, hashed) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    digests = {module.known_sha256(file) for _ in range(3)}
    assert digests == {hashlib.sha256(b"one").hexdigest()} and len(hashed) == 1
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))
    assert module.known_sha256(file) == hashlib.sha256(b"two").hexdigest() and len(hashed) == 2


def test_the_note_may_be_broken_or_unwritable(cache, tmp_path, hashed) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    cache.mkdir()
    for rubbish in ("", "[1]", '{"' + str(file) + '": "x"}', "\x00"):
        (cache / "verified.json").write_text(rubbish)
        assert module.known_sha256(file) == hashlib.sha256(b"one").hexdigest()
    assert len(hashed) == 4
    (cache / "verified.json").unlink()
    cache.rmdir()
    cache.write_bytes(b"not a folder")
    assert module.known_sha256(file) == hashlib.sha256(b"one").hexdigest()
