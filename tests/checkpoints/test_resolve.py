"""What a model name means, and what is said when it means nothing."""

from __future__ import annotations

import struct

import pytest
from helpers.whisper_checkpoints import generation_config, oracle, write_ctranslate2, write_hf, write_openai
from oasr.checkpoints import FORMATS, hub, resolve
from oasr.checkpoints.catalog_data import Piece
from oasr.checkpoints.detect import detect
from oasr.errors import CheckpointError, OptionsError

from oasr_cli.run import check_model


@pytest.fixture(scope="module")
def reference():
    return oracle(encoder_layers=1, decoder_layers=1)


def test_each_format_is_recognised_as_folder_and_as_file(reference, tmp_path) -> None:
    ct2 = write_ctranslate2(reference, tmp_path / "c")
    snapshot = write_hf(reference, tmp_path / "h", "safetensors", generation_config())
    release = write_openai(reference, tmp_path / "o" / "tiny.pt")
    assert detect(ct2) == detect(ct2 / "model.bin") == "ctranslate2"
    assert detect(snapshot) == detect(snapshot / "model.safetensors") == "huggingface"
    assert detect(release) == detect(release.parent) == "openai"


def test_two_formats_in_one_folder_are_ambiguous(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "both", "safetensors", generation_config())
    (folder / "model.bin").write_bytes(
        struct.pack("<IH", 6, 12) + b"WhisperSpec\0" + struct.pack("<III", 3, 0, 0)
    )
    with pytest.raises(CheckpointError, match=r"several formats \(ctranslate2, huggingface\)"):
        detect(folder)
    assert detect(folder / "model.bin") == "ctranslate2"
    assert detect(folder / "model.safetensors") == "huggingface"


def test_a_surer_format_wins(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "h", "safetensors", generation_config())
    write_openai(reference, folder / "tiny.pt")
    assert detect(folder) == "huggingface"


@pytest.mark.parametrize("name", ["model.bin", "pytorch_model.bin", "tiny.pt", "model.safetensors", "x"])
@pytest.mark.parametrize("data", [b"", b"\x06", b"<html></html>", b"\x06\0\0\0\x05\0abc"])
def test_look_alikes_are_no_checkpoints(name: str, data: bytes, tmp_path) -> None:
    (tmp_path / name).write_bytes(data)
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(CheckpointError, match="no known checkpoint format") as caught:
            detect(path)
        assert "model.bin of CTranslate2" in str(caught.value)
    assert f"Found one file of {len(data)} bytes" in str(caught.value)


def test_two_releases_in_a_folder(reference, tmp_path) -> None:
    write_openai(reference, tmp_path / "tiny.pt")
    write_openai(reference, tmp_path / "base.pt")
    with pytest.raises(CheckpointError, match=r"Found base\.pt, tiny\.pt"):
        detect(tmp_path)
    assert detect(tmp_path / "base.pt") == "openai"


def test_empty_folder(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="Found an empty folder"):
        detect(tmp_path)


def test_unknown_formats_list_the_known_ones() -> None:
    with pytest.raises(OptionsError, match="known: ctranslate2, huggingface, icefall, openai"):
        FORMATS.get("gguf")


def test_a_catalog_name_goes_before_a_folder(
    cache, reference, install, publish, tmp_path, monkeypatch
) -> None:
    folder = write_ctranslate2(reference, tmp_path / "made")
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    site = install("toy-model", {f"toy/{name}": data for name, data in files.items()})
    publish("toy", files, tuple(Piece(name, "toy-model", "1.0", f"toy/{name}") for name in files))
    monkeypatch.chdir(tmp_path)
    write_hf(reference, tmp_path / "toy", "safetensors", generation_config())
    assert resolve("toy").path == site / "toy" and resolve("toy").format == "ctranslate2"
    assert resolve("./toy").format == "huggingface"


@pytest.mark.parametrize("spec", ["nowhere", "./nowhere/model", "/nowhere", "a/b/c"])
def test_neither_path_nor_name(spec: str, cache, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path / "..")
    with pytest.raises(CheckpointError, match=r"no such folder or file.*catalog names: tiny\.en, base"):
        resolve(spec)


def test_an_empty_name_is_not_the_current_folder(cache, reference, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(write_ctranslate2(reference, tmp_path / "made"))
    assert resolve(".").format == "ctranslate2"
    with pytest.raises(CheckpointError, match="the name is empty"):
        resolve("")
    with pytest.raises(OptionsError, match="--model: ''"):
        check_model("")


@pytest.mark.parametrize("spec", ["~no-such-user/model", "/" + "x" * 300])
def test_a_path_that_cannot_be_looked_up(spec: str, cache) -> None:
    with pytest.raises(CheckpointError, match=rf"model '{spec}': not a path"):
        resolve(spec)


def snapshot_in_cache(tmp_path, reference, revision: str = "main") -> None:
    repo = tmp_path / "hub" / "models--owner--whisper"
    write_hf(reference, repo / "snapshots" / ("a" * 40), "safetensors", generation_config())
    (repo / "refs").mkdir()
    (repo / "refs" / revision).write_text("a" * 40)


def test_a_hub_id_comes_from_the_local_cache(cache, reference, tmp_path, monkeypatch) -> None:
    snapshot_in_cache(tmp_path, reference)
    monkeypatch.setattr(hub, "download", lambda *_: pytest.fail("the network was asked"))
    assert resolve("owner/whisper").path.name == "a" * 40
    assert resolve(f"owner/whisper@{'a' * 40}").format == "huggingface"


def test_a_hub_id_without_a_hub(cache, monkeypatch) -> None:
    def refuse(*args, **kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(hub.socket, "create_connection", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "_proxied", lambda scheme: False)
    with pytest.raises(CheckpointError) as caught:
        resolve("owner/whisper@v2")
    message = str(caught.value)
    assert "owner/whisper@v2: not on this machine, and the hub" in message
    assert "Name or service not known" in message and "[tiny-en]'" in message


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (["model.safetensors", "pytorch_model.bin", "flax_model.msgpack"], ["model.safetensors"]),
        (
            ["model.safetensors.index.json", "model-1-of-2.safetensors", "pytorch_model.bin"],
            ["model.safetensors.index.json", "model-*.safetensors"],
        ),
        (["model.bin", "vocabulary.json"], ["model.bin"]),
        (["pytorch_model.bin"], ["pytorch_model.bin"]),
        (["exp/pretrained.pt", "exp/epoch-9.pt"], ["exp/pretrained.pt"]),
    ],
)
def test_one_kind_of_weights_is_fetched(present, wanted, cache, tmp_path, monkeypatch) -> None:
    asked: dict[str, object] = {}

    def snapshot(repo, revision=None, allow_patterns=None, local_files_only=False):
        asked.update(repo=repo, revision=revision, patterns=allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(hub, "_require_hub", lambda where: None)
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", lambda self, repo, revision=None: present)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert hub.download("owner/whisper", "v1") == tmp_path
    assert (asked["repo"], asked["revision"]) == ("owner/whisper", "v1")
    assert asked["patterns"][-len(wanted) :] == wanted and "config.json" in asked["patterns"]
    kinds = (".bin", ".safetensors", ".index.json", ".pt")
    assert [pattern for pattern in asked["patterns"] if pattern.endswith(kinds)] == wanted


def test_what_the_hub_answers_is_passed_on(cache, monkeypatch) -> None:
    # That of an HTTP client is no OSError.
    for kind in (OSError, type("ConnectError", (Exception,), {})):

        def fail(self, repo, revision=None, kind=kind):
            raise kind("404 Repository Not Found\nmore lines")

        monkeypatch.setattr(hub, "_require_hub", lambda where: None)
        monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", fail)
        with pytest.raises(CheckpointError) as caught:
            resolve("owner/none")
        assert (
            "model 'owner/none': owner/none: the hub did not deliver it (404 Repository Not Found)."
            in str(caught.value)
        )
        assert "Available without a hub" in str(caught.value)
