"""Checkpoint files made to do harm: none runs code, and none gets more memory or time than it is worth."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.hf_ctc_checkpoints import write_snapshot
from helpers.icefall_checkpoints import write_icefall
from helpers.wenet_checkpoints import write_wenet
from helpers.whisper_checkpoints import generation_config, oracle, write_hf, write_openai, write_tokenizer
from oasr.checkpoints import load_model
from oasr.checkpoints.sections import read_yaml
from oasr.checkpoints.torch_claims import check_claims
from oasr.errors import CheckpointError
from oasr.tokenizers.huggingface import HuggingFaceTokenizer
from oasr.tokenizers.symbol_table import read_symbols

CPU = torch.device("cpu")


class Payload:
    """Runs a command where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch '{self.marker}'",)


def checkpoint(kind: str, folder: Path) -> Path:
    """A valid checkpoint; the file that is to be replaced by a pickle."""
    if kind == "final.pt":
        return write_wenet(folder, "transformer") / "final.pt"
    if kind == "pretrained.pt":
        return write_icefall(folder, "zipformer") / "exp" / "pretrained.pt"
    if kind == "model.pt":
        write_tokenizer(folder)
        return write_openai(oracle(), folder / "model.pt")
    return write_hf(oracle(), folder, "bin", generation_config()) / "pytorch_model.bin"


@pytest.mark.parametrize("written", ["zip", "legacy", "plain"])
@pytest.mark.parametrize("kind", ["final.pt", "pretrained.pt", "model.pt", "pytorch_model.bin"])
def test_no_pickle_runs_its_code(kind: str, written: str, tmp_path: Path) -> None:
    marker, path = tmp_path / "ran", checkpoint(kind, tmp_path / "model")
    load_model(str(path.parent), CPU, "float32")
    evil = {"model": Payload(marker), "dims": Payload(marker), "model_state_dict": {}, "x": torch.zeros(1)}
    if written == "plain":
        path.write_bytes(pickle.dumps(evil))
    else:
        torch.save(evil, path, _use_new_zipfile_serialization=written == "zip")
    # The proof that the file is what it seems: torch runs it when it is told to trust it.
    torch.load(io.BytesIO(path.read_bytes()), weights_only=False) if written != "plain" else pickle.loads(
        path.read_bytes()
    )
    assert marker.exists()
    marker.unlink()
    with pytest.raises(CheckpointError):
        load_model(str(path.parent), CPU, "float32")
    assert not marker.exists()


def archive(
    path: Path, data: bytes, kind: int = zipfile.ZIP_STORED, members: dict[str, bytes] | None = None
) -> Path:
    """A torch archive around a pickle."""
    with zipfile.ZipFile(path, "w", kind) as file:
        file.writestr("archive/data.pkl", data)
        file.writestr("archive/version", b"3\n")
        for name, content in (members or {}).items():
            file.writestr(f"archive/{name}", content)
    return path


def calls(module: str, name: str, argument: int) -> bytes:
    """A pickle, protocol 2, of `{"x": module.name(argument)}`."""
    return b"\x80\x02}X\x01\x00\x00\x00x" + f"c{module}\n{name}\n".encode() + b"\x8a\x06" + struct.pack(
        "<Q", argument
    )[:6] + b"\x85Rs."  # fmt: skip


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "bytearray"),
        ("torch", "Tensor"),
        ("torch", "FloatTensor"),
        ("torch.storage", "UntypedStorage"),
    ],
)
def test_a_constructor_gets_no_memory(module: str, name: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.pt", calls(module, name, 1 << 40))
    with pytest.raises(CheckpointError, match=rf"it makes a {module}\.{name} when it is loaded"):
        check_claims(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_storage_is_not_larger_than_its_file(zipped: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save({"x": torch.zeros(300)}, path, _use_new_zipfile_serialization=zipped)
    data = path.read_bytes()
    check_claims(path)
    # 300 is stored as a number of two bytes; the same with four says two thousand million.
    if zipped:
        with zipfile.ZipFile(path) as file:
            pickled = file.read("x/data.pkl")
        archive(path, pickled.replace(b"M\x2c\x01t", b"J\xff\xff\xff\x7ft", 1))
    else:
        path.write_bytes(data.replace(b"M\x2c\x01N", b"J\xff\xff\xff\x7fN", 1))
    with pytest.raises(CheckpointError, match=r"found a FloatStorage of 2147483647 elements"):
        check_claims(path)


def test_a_member_does_not_unpack_to_more_than_the_file(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.pt", b"\x00" * 50_000_000, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(CheckpointError, match=r"members of 50000002 bytes in a file of"):
        check_claims(path)


@pytest.mark.parametrize(
    "name", ["../../escaped", "model/../../../escaped", "/tmp/oasr-escaped", "model/link"]
)
def test_members_of_an_archive_are_written_nowhere(name: str, tmp_path: Path, monkeypatch) -> None:
    path = checkpoint("model.pt", tmp_path / "deep" / "model")
    with zipfile.ZipFile(path, "a") as file:
        member = zipfile.ZipInfo(name)
        member.external_attr = 0o120777 << 16 if name.endswith("link") else 0
        file.writestr(member, b"../../escaped")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with contextlib.suppress(CheckpointError):  # torch refuses members outside the archive's own folder
        load_model(str(path), CPU, "float32")
    assert sorted(tmp_path.rglob("*")) == before and not Path("/tmp/oasr-escaped").exists()


def test_a_tar_archive_is_not_unpacked(tmp_path: Path) -> None:
    import tarfile

    path = checkpoint("final.pt", tmp_path / "model")
    with tarfile.open(path, "w") as tar:
        for name in ("storages", "../escaped", "pickle"):
            info = tarfile.TarInfo(name)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(CheckpointError, match="not a readable PyTorch file"):
        load_model(str(path.parent), CPU, "float32")
    assert not list(tmp_path.rglob("escaped"))


def test_a_key_that_takes_years_to_hash(tmp_path: Path) -> None:
    levels = b"".join(b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(60))
    path = archive(tmp_path / "x.pt", b"\x80\x02}(K\x01\x85" + levels + b"K\x00u.")
    with pytest.raises(pickle.UnpicklingError, match="a tuple of 131072 values"):
        check_claims(path)


def test_a_view_that_repeats_its_values_is_refused(tmp_path: Path) -> None:
    path = checkpoint("final.pt", tmp_path / "model")
    state = torch.load(path)
    torch.save({**state, "ctc.ctc_lo.weight": torch.zeros(1, 16).expand(1 << 40, 16)}, path)
    with pytest.raises(
        CheckpointError, match=r"ctc\.ctc_lo\.weight: expected a plain tensor, found shape \[1099"
    ):
        load_model(str(path.parent), CPU, "float32")


@pytest.mark.parametrize(
    "value", [torch.zeros(3, device="meta"), torch.zeros(3).to_sparse()], ids=["meta", "sparse"]
)
def test_tensors_without_numbers_are_refused(value: torch.Tensor, tmp_path: Path) -> None:
    path = checkpoint("final.pt", tmp_path / "model")
    torch.save({**torch.load(path), "odd": value}, path)
    with pytest.raises(CheckpointError):
        load_model(str(path.parent), CPU, "float32")


def test_what_torch_saves_is_followed_to_its_end(tmp_path: Path) -> None:
    half = torch.arange(6).reshape(2, 3).half()
    state = OrderedDict(a=half, b=half.t(), c=torch.nn.Parameter(half.float()), d=torch.tensor(True))
    whole = {"model": state, "lists": [1, 2.5, "x", None, (1, (2, 3))], "long": 1 << 70, "set": {1}}
    for zipped in (True, False):
        torch.save(whole, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
        check_claims(tmp_path / "x.pt")


ALIASES = "a: &a [x, x, x]\n" + "".join(
    f"{key}: &{key} [{', '.join([f'*{last}'] * 9)}]\n" for last, key in pairwise("abcdefghi")
)

# Configurations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ALIASES, "stand for more than"),
        ("a: &a [*a]\n", "stand for more than"),
        ("a: " + "[" * 5000, "cannot be read as YAML"),
        ("a: 2001-99-99\n", "cannot be read as YAML"),
        ("a: " + "1" * 5000 + "\n", "cannot be read as YAML"),
        ("a: !!python/object/apply:os.system [id]\n", "cannot be read as YAML"),
        ("a: x\n" * 300_000, "expected at most"),
    ],
    ids=["aliases", "itself", "nested", "date", "digits", "code", "long"],
)  # fmt: skip
def test_yaml_that_blows_up(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(text)
    with pytest.raises(CheckpointError, match=message):
        read_yaml(tmp_path / "train.yaml")


@pytest.mark.parametrize("line", ["a 99999999999", "a 2000000", "a " + "1" * 5000])
def test_a_label_beyond_every_vocabulary(line: str, tmp_path: Path) -> None:
    (tmp_path / "units.txt").write_text(f"<blank> 0\n{line}\n")
    with pytest.raises(CheckpointError, match=r"units\.txt:2: expected `symbol number`"):
        read_symbols(tmp_path / "units.txt")


def test_an_id_beyond_every_vocabulary(tmp_path: Path) -> None:
    path = write_tokenizer(tmp_path)
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["vocab"]["a"] = 4_000_000_000
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(CheckpointError, match="expected ids below 1048576, found 4000000000"):
        HuggingFaceTokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: expected at most 1000"),
        ({"hidden_size": 10**9}, "hidden_size: expected at most"),
        ({"conv_dim": [8] * 5000}, "conv_dim: expected at most 1000 values"),
        ({"max_source_positions": 1_000_000, "hidden_size": 1_000_000}, "a table of at most"),
    ],
)
def test_a_network_of_impossible_size_is_not_built(changes: dict, message: str, tmp_path: Path) -> None:
    write_snapshot(tmp_path, "wav2vec2-group")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(CheckpointError, match=message):
        load_model(str(tmp_path), CPU, "float32")


def test_what_only_costs_memory_or_fetches_code_is_left_out(tmp_path: Path) -> None:
    write_snapshot(tmp_path, "wav2vec2-group")
    path = tmp_path / "config.json"
    odd = {"num_labels": 10**12, "_attn_implementation": "owner/code", "auto_map": {"AutoModel": "x--y.Z"}}
    path.write_text(json.dumps({**json.loads(path.read_text()), **odd}))
    model = load_model(str(tmp_path), CPU, "float32")
    assert len(model.network.config.id2label) == 2


def test_a_message_is_cut_in_its_middle() -> None:
    message = str(CheckpointError("where" + "x" * 100_000 + "what to do"))
    assert message.startswith("wherexxx") and message.endswith("xxxwhat to do") and len(message) < 5000
    assert "(96015 characters)" in message
