"""`oasr models`: the catalog on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oasr.checkpoints import catalog
from oasr.checkpoints.catalog import FileCheck
from oasr.errors import CheckpointError


@pytest.fixture
def only_tiny(monkeypatch):
    monkeypatch.setattr(catalog, "installed", lambda name: name == "tiny.en")


def test_list_names_every_model(oasr, only_tiny):
    rows = json.loads(oasr("models", "list", "--json").out)
    assert [row["name"] for row in rows] == [entry.name for entry in catalog.entries()]
    assert [row["name"] for row in rows if row["installed"]] == ["tiny.en"]
    lines = oasr("models", "list").out.splitlines()
    assert lines[0].split("\t") == ["name", "here", "parameters", "size", "licence", "source"]
    tiny = next(line for line in lines if line.startswith("tiny.en\t")).split("\t")
    assert tiny[1:] == ["yes", "39 M", "74 MiB", "MIT", "pip extra tiny-en"]


def test_show_tells_source_licence_and_digests(oasr, only_tiny, monkeypatch):
    monkeypatch.setattr(catalog, "locate", lambda name: Path("/models/tiny.en"))
    facts = json.loads(oasr("models", "show", "tiny.en", "--json").out)
    entry = catalog.get("tiny.en")
    assert facts["sha256"]["model.bin"] == entry.files["model.bin"].sha256
    assert facts["hub"] == entry.hub.repo and facts["hub_revision"] == entry.hub.revision
    assert facts["folder"] == "/models/tiny.en" and facts["licence"] == entry.licence
    text = oasr("models", "show", "tiny.en").out
    assert f"  model.bin  {entry.files['model.bin'].sha256}" in text and "installed: yes" in text


def test_show_of_a_damaged_model_says_so(oasr, only_tiny, monkeypatch):
    def damaged(name):
        raise CheckpointError("model.bin: expected sha256 a, found b")

    monkeypatch.setattr(catalog, "locate", damaged)
    done = oasr("models", "show", "tiny.en")
    assert done.code == 0 and "problem: model.bin: expected sha256 a, found b" in done.out


def test_pull_prints_the_folder_alone(oasr, monkeypatch):
    monkeypatch.setattr(catalog, "pull", lambda name: Path("/models") / name)
    assert oasr("models", "pull", "base").out == "/models/base\n"
    assert json.loads(oasr("models", "pull", "base", "--json").out) == {
        "name": "base",
        "folder": "/models/base",
    }


def test_pull_that_fails_is_exit_1_with_what_to_do(oasr, monkeypatch):
    def unreachable(name):
        raise CheckpointError("model 'small' is not installed: no hub is reachable; pip install ...")

    monkeypatch.setattr(catalog, "pull", unreachable)
    done = oasr("models", "pull", "small")
    assert done.code == 1 and "no hub is reachable; pip install" in done.err and done.out == ""


CHECKS = [FileCheck(Path("/m/model.bin"), "aa", "aa"), FileCheck(Path("/m/vocab.txt"), None, "bb")]


def test_verify_is_ok_when_every_file_is(oasr, only_tiny, monkeypatch):
    monkeypatch.setattr(catalog, "verify", lambda name: CHECKS)
    done = oasr("models", "verify")
    assert done.code == 0
    assert done.out.splitlines() == [
        "tiny.en: /m/model.bin: ok",
        "tiny.en: /m/vocab.txt: ok (the catalog knows no digest of it)",
    ]


@pytest.mark.parametrize("found", ["bb", None])
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_verify_fails_when_a_file_is_wrong_or_gone(oasr, only_tiny, monkeypatch, found, flags):
    wrong = FileCheck(Path("/m/config.json"), "aa", found)
    monkeypatch.setattr(catalog, "verify", lambda name: [*CHECKS, wrong])
    done = oasr("models", "verify", "tiny.en", *flags)
    assert done.code == 1
    if flags:
        assert [check["ok"] for check in json.loads(done.out)["tiny.en"]] == [True, True, False]
    else:
        assert "config.json: WRONG: expected sha256 aa" in done.out


def test_verify_without_any_model(oasr, monkeypatch):
    monkeypatch.setattr(catalog, "installed", lambda name: False)
    done = oasr("models", "verify")
    assert done.code == 1 and "oasr models pull" in done.err


@pytest.mark.parametrize("command", ["show", "pull", "verify"])
def test_a_name_that_nobody_has_lists_the_known_ones(oasr, command):
    done = oasr("models", command, "tinny")
    assert done.code == 2 and "'tinny'" in done.err and "tiny.en, base" in done.err


@pytest.mark.weights
def test_the_embedded_model_is_sound(oasr):
    done = oasr("models", "verify", "tiny.en")
    assert done.code == 0 and "model.bin: ok" in done.out


def test_a_fetch_that_the_user_breaks_off(oasr, monkeypatch):
    def broken_off(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog, "pull", broken_off)
    assert oasr("models", "pull", "base").code == 130
