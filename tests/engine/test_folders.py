"""The cache folder."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from oasr.folders import cache_dir


def test_the_folder_can_be_chosen(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path / "here"))
    assert cache_dir() == tmp_path / "here"
    monkeypatch.delenv("OASR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "oasr"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "oasr"


@pytest.fixture
def temporary(monkeypatch, tmp_path) -> Path:
    """The folder for temporary files of a user without a home, as in a container under any uid."""
    for name in ("HOME", "OASR_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def own(temporary: Path) -> Path:
    return temporary / f"oasr-{os.geteuid()}"


@pytest.mark.parametrize("chosen", [None, "~/cache"])
def test_without_a_home_it_is_a_private_folder_among_the_temporary_ones(
    monkeypatch, temporary, chosen
) -> None:
    if chosen is not None:
        monkeypatch.setenv("OASR_CACHE_DIR", chosen)
    temporary.chmod(0o1777)
    # A second process finds the folder of the first.
    assert cache_dir() == cache_dir() == own(temporary)
    assert stat.S_IMODE(own(temporary).stat().st_mode) == 0o700


def anybody_may_write(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def a_link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to("elsewhere")


def a_file(folder: Path) -> None:
    folder.touch(0o700)


def anybody_may_rename(folder: Path) -> None:
    folder.parent.chmod(0o777)


@pytest.mark.parametrize("prepare", [anybody_may_write, a_link, a_file, anybody_may_rename])
def test_a_place_that_others_can_change_keeps_nothing(temporary, prepare) -> None:
    prepare(own(temporary))
    with pytest.raises(OSError, match="Not a directory"):
        cache_dir().mkdir(parents=True)
    assert not (cache_dir() / "verified.json").exists()


def test_a_folder_of_another_user_is_left_alone(monkeypatch, temporary) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    own(temporary).mkdir(mode=0o700)
    assert own(temporary) not in (cache_dir(), *cache_dir().parents)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder away")
def test_nothing_is_kept_below_a_folder_of_another_user(temporary) -> None:
    os.chown(temporary, 12345, -1)
    assert own(temporary) not in (cache_dir(), *cache_dir().parents)


def test_without_any_place_for_temporary_files_nothing_is_kept(monkeypatch, temporary) -> None:
    def none() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert not cache_dir().parent.is_dir()
