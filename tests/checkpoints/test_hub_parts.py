"""Snapshots of which the cache holds a part: what is fetched, and what serves without a hub."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oasr.checkpoints import catalog, hub
from oasr.checkpoints.catalog_data import HubSource
from oasr.errors import CheckpointError

COMMIT = "a" * 40
SHARDS = [f"model-{part}-of-2.safetensors" for part in (1, 2)]
INDEX = json.dumps({"weight_map": dict(zip("ab", SHARDS, strict=True))})
CTC = {"config.json": json.dumps({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]})}
WHISPER = {"config.json": json.dumps({"model_type": "whisper", "architectures": ["WhisperForX"]})}
ONE, TOKENS, FEATURES = {"model.safetensors": ""}, {"tokenizer.json": ""}, {"preprocessor_config.json": ""}
WHOLE = WHISPER | ONE | TOKENS


@pytest.fixture
def write(cache: Path, tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """`write(files)` puts files into the snapshot of owner/toy."""
    repo = tmp_path / "hub" / "models--owner--toy"

    def put(files: dict[str, str]) -> Path:
        (repo / "refs").mkdir(parents=True, exist_ok=True)
        (repo / "refs" / "main").write_text(COMMIT)
        for name, content in files.items():
            path = repo / "snapshots" / COMMIT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return repo / "snapshots" / COMMIT

    return put


@pytest.fixture
def asked(write, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, list[str]]]:
    """(revision, patterns) of each download from a hub that has everything."""
    import huggingface_hub

    calls: list[tuple[str | None, list[str]]] = []
    local = huggingface_hub.snapshot_download

    def snapshot(repo: str, revision=None, allow_patterns=None, local_files_only=False) -> Any:
        if local_files_only:
            return local(repo, revision=revision, allow_patterns=allow_patterns, local_files_only=True)
        calls.append((revision, [name for name in allow_patterns if name not in hub._SMALL]))
        return str(write(TOKENS | FEATURES | dict.fromkeys(SHARDS, "")))

    names = ["model.safetensors.index.json", *SHARDS, "pytorch_model.bin", "tokenizer.json"]
    monkeypatch.setattr(hub, "_require_hub", lambda where: None)
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", lambda *_, **__: names)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    return calls


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.mark.parametrize(
    "files",
    [
        WHOLE,
        CTC | ONE | {"vocab.json": ""} | FEATURES,
        CTC | ONE | TOKENS | {"processor_config.json": ""},
        WHISPER | TOKENS | {"model.safetensors.index.json": INDEX} | dict.fromkeys(SHARDS, ""),
        {"model.bin": "", "config.json": "{}"} | TOKENS,
        {"exp/pretrained.pt": "", "data/lang_bpe_9/tokens.txt": ""},
        {"exp/pretrained.pt": "", "bpe.model": ""},
    ],
)
def test_where_all_is_there_no_hub_is_asked(write, monkeypatch, files) -> None:
    monkeypatch.setattr(hub, "_require_hub", lambda where: pytest.fail("the network was asked"))
    folder = write(files)
    assert hub.cached("owner/toy") == hub.fetch("owner/toy") == folder


@pytest.mark.parametrize("files", [WHISPER | ONE, CTC | ONE | TOKENS, CTC | ONE | FEATURES, ONE | TOKENS])
def test_what_lies_beside_the_weights_is_fetched_alone(write, asked, publish, files) -> None:
    folder = write(files)
    publish("toy", {}, (), HubSource("owner/toy"))
    assert hub.cached("owner/toy") is None and not catalog.installed("toy")
    assert hub.fetch("owner/toy") == catalog.pull("toy") == folder
    # The commit that is here, not what the branch has become; and no weights.
    assert set(map(str, asked)) == {str((COMMIT, []))}


@pytest.mark.parametrize("have", [[], SHARDS[:1]])
def test_a_download_that_was_broken_off_goes_on(write, asked, have) -> None:
    # The whole file beside them does not count: the reader takes what comes first.
    folder = write(WHISPER | TOKENS | {"model.safetensors.index.json": INDEX, "pytorch_model.bin": ""})
    write(dict.fromkeys(have, ""))
    assert hub.fetch("owner/toy") == folder
    assert asked == [(None, ["model.safetensors.index.json", "model-*.safetensors"])]
    assert hub.fetch("owner/toy") == folder and len(asked) == 1


def test_without_a_hub_weights_serve_as_they_are(write, no_hub, caplog) -> None:
    folder = write(WHISPER | ONE)
    assert hub.fetch("owner/toy") == folder
    assert "owner/toy: not all files beside the weights are on this machine" in caplog.text


def test_without_a_hub_half_the_weights_do_not(write, no_hub) -> None:
    write(WHISPER | TOKENS | {"model.safetensors.index.json": INDEX})
    with pytest.raises(CheckpointError, match="not all of it is on this machine, and the hub"):
        hub.fetch("owner/toy")


def test_files_that_nobody_asked_for_need_not_be_here(write, monkeypatch) -> None:
    """Newer versions of huggingface_hub list a repository beside its snapshot, and miss what is not there."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    folder, listed = write(WHOLE), [*WHOLE, "README.md"]

    def snapshot(repo, revision=None, allow_patterns=None, local_files_only=False):
        from fnmatch import fnmatch

        wanted = [n for n in listed if not allow_patterns or any(fnmatch(n, p) for p in allow_patterns)]
        if all((folder / name).is_file() for name in wanted):
            return str(folder)
        error = LocalEntryNotFoundError("incomplete")
        error.snapshot_path = str(folder)
        raise error

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert hub.cached("owner/toy") == folder
    listed.append("generation_config.json")
    assert hub.cached("owner/toy") is None
    # It can be used all the same, which is what whoever only looks wants to know.
    assert hub.present("owner/toy") == folder
    (folder / "tokenizer.json").unlink(missing_ok=True)
    (folder / "vocab.json").unlink(missing_ok=True)
    assert hub.present("owner/toy") is None
