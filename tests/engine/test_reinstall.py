"""The pip command in messages leads to this oasr, and never to a project of the same name in an index."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
from oasr import reinstall
from oasr.reinstall import pip_install
from packaging.requirements import Requirement


def come_from(monkeypatch: pytest.MonkeyPatch, noted: str | None) -> None:
    found = SimpleNamespace(version="9.8", read_text=lambda name: noted)
    monkeypatch.setattr(reinstall, "distribution", lambda name: found)


def test_a_folder_or_wheel_is_named_by_its_path(monkeypatch, tmp_path: Path) -> None:
    folder = tmp_path / "my code"
    folder.mkdir()
    url = folder.as_uri()
    come_from(monkeypatch, json.dumps({"url": url, "dir_info": {}}))
    assert shlex.split(pip_install("vad")) == ["pip", "install", f"{folder}[vad]"]
    come_from(monkeypatch, json.dumps({"url": url, "dir_info": {"editable": True}}))
    command = shlex.split(pip_install("vad", "--no-deps"))
    assert command == ["pip", "install", "--no-deps", "-e", f"{folder}[vad]"]
    assert shlex.split(pip_install()) == ["pip", "install", "-e", str(folder)]


def test_a_repository_or_an_archive_is_named_by_its_url(monkeypatch) -> None:
    vcs = {"vcs": "git", "commit_id": "abc123"}
    come_from(monkeypatch, json.dumps({"url": "https://host/oasr.git", "vcs_info": vcs}))
    wanted = Requirement(shlex.split(pip_install("ray"))[2])
    assert (wanted.extras, wanted.url) == ({"ray"}, "git+https://host/oasr.git@abc123")
    come_from(monkeypatch, json.dumps({"url": "https://host/oasr-9.8.whl", "archive_info": {}}))
    assert Requirement(shlex.split(pip_install())[2]).url == "https://host/oasr-9.8.whl"


def test_a_copy_from_an_index_is_pinned(monkeypatch) -> None:
    come_from(monkeypatch, None)
    wanted = Requirement(shlex.split(pip_install("vad"))[2])
    assert (wanted.name, str(wanted.specifier), wanted.extras) == ("oasr", "==9.8", {"vad"})


@pytest.mark.parametrize("noted", ['{"url": "file:///gone/away"}', "[]", "{", '{"url": 7}', "{}"])
def test_an_origin_that_is_gone_means_a_checkout(monkeypatch, noted: str) -> None:
    come_from(monkeypatch, noted)
    assert pip_install("vad") == "pip install '.[vad]' (in a checkout of oasr)"


def test_so_does_a_copy_that_was_never_installed(monkeypatch) -> None:
    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(reinstall, "distribution", absent)
    assert pip_install() == "pip install . (in a checkout of oasr)"


def test_what_runs_here_has_an_origin() -> None:
    assert pip_install("dev").startswith("pip install ") and pip_install("dev").endswith("[dev]'")
