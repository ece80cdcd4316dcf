"""The cache folder."""

from __future__ import annotations

from pathlib import Path

from oasr.folders import cache_dir


def test_the_folder_can_be_chosen(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path / "here"))
    assert cache_dir() == tmp_path / "here"
    monkeypatch.delenv("OASR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "oasr"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "oasr"
