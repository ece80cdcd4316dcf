"""CTC snapshots: what is recognised, what is read, and what is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from helpers.hf_ctc_checkpoints import LETTERS, SETTINGS, clip, write_snapshot
from oasr.checkpoints import load_model, resolve
from oasr.checkpoints.hf_ctc_tokens import read_tokenizer
from oasr.errors import CheckpointError, OptionsError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models

CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_snapshot(tmp_path / "snapshot", "wav2vec2-layer")
    return tmp_path / "snapshot"


def edit(path: Path, **changes: Any) -> None:
    """Change top-level keys of a JSON file; ... removes one."""
    values = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    values = {k: v for k, v in {**values, **changes}.items() if v is not ...}
    path.write_text(json.dumps(values), "utf-8")


def log_probs(folder: Path) -> torch.Tensor:
    model = load_model(str(folder), CPU, "float32")
    with torch.inference_mode():
        features, frames = model.frontend(torch.from_numpy(clip(0, 8000))[None], torch.tensor([8000]))
        return model.forward_offline(features, frames).log_probs


def text(folder: Path, *symbols: str) -> str:
    """What the tokenizer in `folder` makes of labels of `LETTERS`."""
    return load_model(str(folder), CPU, "float32").tokenizer.decode([LETTERS.index(s) for s in symbols])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_snapshot_is_recognised(tmp_path: Path, name: str) -> None:
    write_snapshot(tmp_path, name)
    for path in (tmp_path, tmp_path / "model.safetensors"):
        assert resolve(str(path)).format == "huggingface"
    model = load_model(str(tmp_path), CPU, "float32")
    assert model.capabilities == ("ctc",) and model.architecture == "hf_ctc"
    assert model.blank_id == (len(model.tokenizer.special_ids) and model.tokenizer.special_ids["<pad>"])
    assert not any(p.is_meta for p in [*model.parameters(), *model.buffers()])


def test_older_files_say_the_same(folder: Path) -> None:
    """Before transformers 5: the extractor's own file, PyTorch weights, halves of a norm by other names."""
    wanted = log_probs(folder)
    extractor = json.loads((folder / "processor_config.json").read_text("utf-8"))["feature_extractor"]
    del extractor["feature_extractor_type"]
    (folder / "preprocessor_config.json").write_text(json.dumps(extractor), "utf-8")
    (folder / "processor_config.json").unlink()
    state = load_file(folder / "model.safetensors")
    for kind, number in (("weight_g", 0), ("weight_v", 1)):
        prefix = "wav2vec2.encoder.pos_conv_embed.conv."
        state[prefix + kind] = state.pop(f"{prefix}parametrizations.weight.original{number}")
    state["wav2vec2.masked_spec_embed"] = torch.ones(16)
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    assert torch.equal(log_probs(folder), wanted)
    assert load_model(str(folder), CPU, "float32").load_report.unexpected == ()


def test_missing_and_strange_tensors_are_named(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    save_file({**state, "quantizer.codevectors": torch.ones(2)}, folder / "model.safetensors")
    assert load_model(str(folder), CPU, "float32").load_report.unexpected == ("quantizer.codevectors",)
    del state["lm_head.bias"]
    save_file(state, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"lacks 1 tensors.*lm_head\.bias"):
        load_model(str(folder), CPU, "float32")


def test_running_statistics_are_read(tmp_path: Path) -> None:
    write_snapshot(tmp_path, "conformer-rotary")
    before = log_probs(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    name = "wav2vec2_conformer.encoder.layers.0.conv_module.batch_norm.running_mean"
    save_file({**state, name: state[name] + 1}, tmp_path / "model.safetensors")
    assert (log_probs(tmp_path) - before).abs().max() > 0.1
    buffers = dict(load_model(str(tmp_path), CPU, "float32").named_buffers())
    assert torch.equal(buffers[f"network.{name}"], state[name] + 1)
    del state[name]
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="running_mean"):
        log_probs(tmp_path)


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config.json", {"architectures": ["Wav2Vec2ForPreTraining"]}, "Wav2Vec2ForCTC, found Wav2Vec2ForP"),
        ("config.json", {"pad_token_id": None}, "pad_token_id: expected the label of the blank"),
        ("config.json", {"pad_token_id": 13}, "pad_token_id 13 must be below vocab_size 13"),
        ("config.json", {"pad_token_id": 4}, "is 4, but the vocabulary has '<pad>' at 0"),
        ("config.json", {"hidden_size": 18}, "do not belong together|no Wav2Vec2ForCTC can be built"),
        ("config.json", {"feat_extract_norm": "batch"}, "no Wav2Vec2ForCTC can be built from it"),
        ("config.json", {"vocab_size": 12}, "expected shape"),
        ("config.json", {"model_type": "sew"}, "known: hubert, parakeet_ctc"),
        ("preprocessor_config.json", {"feature_extractor_type": "Mel"}, "extractor_type: expected one"),
        ("preprocessor_config.json", {"do_normalize": 3}, "do_normalize: expected true or false"),
        ("preprocessor_config.json", {"do_augment": True}, "unknown do_augment; it may change"),
        ("processor_config.json", {"feature_extractor": ...}, "does not describe its features"),
        ("vocab.json", {"<s>": 0}, "expected a label of its own for '<s>'|for '<pad>'"),
        ("vocab.json", {"A": "1"}, "expected a label of its own for 'A', found '1'"),
        ("added_tokens.json", {"<x>": -1}, "expected a label of its own for '<x>'"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"9": "<s>"}}, "added_tokens_decoder: expected"),
        ("tokenizer_config.json", {"do_lower_case": "yes"}, "do_lower_case: expected true or false"),
    ],
    ids=lambda x: f"{next(iter(x))}-{next(iter(x.values()))}" if isinstance(x, dict) else "",
)  # fmt: skip
def test_what_cannot_be_right_is_refused(folder: Path, file: str, changes: dict, message: str) -> None:
    edit(folder / file, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_model(str(folder), CPU, "float32")


def test_a_vocabulary_is_needed(folder: Path) -> None:
    (folder / "vocab.json").unlink()
    with pytest.raises(CheckpointError, match=r"looked for vocab\.json and tokenizer\.json"):
        load_model(str(folder), CPU, "float32")


def write_ctc_tokenizer(path: Path, *around: Any) -> None:
    """A tokenizer.json of the same labels, whose decoder merges equal neighbours."""
    backend = Tokenizer(models.WordLevel({s: i for i, s in enumerate(LETTERS)}, "<unk>"))
    collapse = decoders.CTC("<pad>", "|", True)
    backend.decoder = decoders.Sequence([collapse, *around]) if around else collapse
    backend.add_special_tokens(list(LETTERS[:4]))
    backend.save(str(path))


def test_characters_go_before_a_tokenizer_json_beside_them(folder: Path) -> None:
    """As in transformers: a second merge would take one of two equal letters away."""
    write_ctc_tokenizer(folder / "tokenizer.json")
    labels = [LETTERS.index(s) for s in "THEE|E"]
    theirs = transformers.Wav2Vec2CTCTokenizer.from_pretrained(folder)
    assert text(folder, *"THEE|E") == theirs.decode(labels, group_tokens=False) == "THEE E"


@pytest.mark.parametrize("name", ["wav2vec2-layer", "parakeet"])
def test_a_tokenizer_json_that_merges_again_is_refused(tmp_path: Path, name: str) -> None:
    write_snapshot(tmp_path, name)
    (tmp_path / "vocab.json").unlink(missing_ok=True)
    for around in ((), (decoders.Fuse(),)):
        write_ctc_tokenizer(tmp_path / "tokenizer.json", *around)
        with pytest.raises(
            CheckpointError, match=r"tokenizer\.json: its decoder is of type CTC, which merges"
        ):
            load_model(str(tmp_path), CPU, "float32")


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_integer_arithmetic_is_not_claimed(folder: Path, dtype: str) -> None:
    with pytest.raises(OptionsError, match=f"dtype {dtype}"):
        load_model(str(folder), CPU, dtype)


def test_control_symbols_render_as_nothing(folder: Path) -> None:
    assert text(folder, "<s>", "T", "H", "E", "|", "<unk>", "S", "</s>", "<pad>") == "THE S"
    edit(folder / "tokenizer_config.json", do_lower_case=True)
    assert text(folder, "T", "H", "E", "|", "S") == "the s"
    edit(folder / "tokenizer_config.json", replace_word_delimiter_char="_", word_delimiter_token="H")
    assert text(folder, "T", "H", "E") == "t_e"


def test_other_names_of_control_symbols(folder: Path) -> None:
    """As fine-tuning tutorials have it: [PAD] last, sentence marks behind the vocabulary."""
    (folder / "vocab.json").write_text(
        json.dumps({**{c: i for i, c in enumerate("|ETAOIHSNé")}, "[UNK]": 10, "[PAD]": 11}), "utf-8"
    )
    config = {
        "pad_token": "[PAD]", "unk_token": {"content": "[UNK]"}, "bos_token": "<s>", "eos_token": "</s>",
        "added_tokens_decoder": {"12": {"content": "<laugh>", "special": True}},
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    edit(folder / "added_tokens.json", **{"<s>": 12})
    edit(folder / "config.json", pad_token_id=11)
    model = load_model(str(folder), CPU, "float32")
    assert model.blank_id == 11
    assert model.tokenizer.decode([12, 2, 6, 1, 0, 10, 9, 11]) == "THE é"
    assert model.tokenizer.token_pieces([12, 2, 0, 9]) == ["", "T", " ", "é"]
    (folder / "added_tokens.json").unlink()
    assert load_model(str(folder), CPU, "float32").tokenizer.decode([12, 2, 12]) == "T"


def test_a_sigma_is_lowered_by_its_place_in_the_word(folder: Path) -> None:
    """As in transformers, which lowers the text as a whole."""
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ΟΔΣİß", "́", "ΣΑ", "<0xC4>", "<0xB0>"]
    (folder / "vocab.json").write_text(json.dumps({s: i for i, s in enumerate(letters)}), "utf-8")
    edit(folder / "tokenizer_config.json", do_lower_case=True)
    tokenizer = read_tokenizer(folder, 0)
    theirs = transformers.Wav2Vec2CTCTokenizer.from_pretrained(folder)
    for symbols in ("ΟΔΟΣ|ΣΟΣ", "Σ|ΟΣ", "ΟΣ́", "ΟΣ́Ο", "İΣ|ßΣΣ", "Σ"):
        labels = [letters.index(s) for s in symbols]
        wanted = theirs.decode(labels, group_tokens=False)
        pieces = tokenizer.token_pieces(labels)
        assert tokenizer.decode(labels) == "".join(pieces) == wanted and all(pieces)
        text, state = "", None
        for label in labels:
            more, state = tokenizer.decode_incremental([label], state)
            text += more
            assert wanted.startswith(text)
        assert text + tokenizer.flush(state) == wanted
    assert tokenizer.decode([5, 11]) == "οσα" and tokenizer.token_pieces([5, 7, 4, 7]) == ["ο", "ς", " ", "σ"]
    assert tokenizer.encode("οδος σ") == [5, 6, 5, 7, 4, 7]
    assert tokenizer.token_pieces([12, 13, 7]) == ["", "i\u0307", "ς"]


def test_one_vocabulary_of_many_languages(folder: Path) -> None:
    ours = {s: i for i, s in enumerate(LETTERS)}
    (folder / "vocab.json").write_text(json.dumps({"eng": ours, "fra": {**ours, "E": 6, "A": 5}}), "utf-8")
    assert text(folder, "E", "A") == "EA"
    edit(folder / "tokenizer_config.json", target_lang="fra")
    assert text(folder, "E", "A") == "AE"
    edit(folder / "tokenizer_config.json", target_lang="deu")
    with pytest.raises(CheckpointError, match="target_lang is 'deu', and there are eng, fra"):
        text(folder)


def test_phones_are_set_apart(folder: Path) -> None:
    edit(
        folder / "tokenizer_config.json",
        tokenizer_class="Wav2Vec2PhonemeCTCTokenizer",
        word_delimiter_token="|",
    )
    assert text(folder, "T", "|", "H", "<s>", "E") == "T H E"
