"""icefall folders: what is recognised, what is inferred, and what is refused with a reason."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path, PosixPath

import pytest
import torch
from helpers.icefall_checkpoints import TOKENS, golden, state_of, write_icefall
from oasr.checkpoints import load_model, resolve
from oasr.errors import CheckpointError

CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_icefall(tmp_path / "recipe", "zipformer")


def load(folder: Path):
    return load_model(str(folder), CPU, "float32")


def save(folder: Path, state: dict, **more) -> None:
    torch.save({"model": state, **more}, folder / "exp" / "pretrained.pt")


def log_probs(model) -> torch.Tensor:
    with torch.inference_mode():
        return model.forward_offline(golden("zipformer").features(1)[None], torch.tensor([61])).log_probs[0]


def test_a_recipe_is_recognised(folder: Path) -> None:
    for path in (folder, folder / "exp" / "pretrained.pt"):
        assert resolve(str(path)).format == "icefall"
    (folder / "exp" / "pretrained.pt").rename(folder / "exp" / "epoch-9.pt")
    shutil.copy(folder / "exp" / "epoch-9.pt", folder / "exp" / "epoch-30-avg-5.pt")
    assert resolve(str(folder)).files["weights"].name == "epoch-30-avg-5.pt"
    assert resolve(str(folder / "exp" / "epoch-9.pt")).files["weights"].name == "epoch-9.pt"
    flat = folder.parent / "flat"
    flat.mkdir()
    shutil.copy(folder / "exp" / "epoch-9.pt", flat / "pretrained.pt")
    shutil.copy(folder / "data" / "lang_bpe_12" / "tokens.txt", flat)
    assert resolve(str(flat)).format == "icefall"
    torch.testing.assert_close(log_probs(load(flat)), golden("zipformer").log_probs[1], atol=1e-4, rtol=0)
    (flat / "tokens.txt").unlink()
    assert resolve(str(flat)).format == "openai"


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["epoch-30.pt", "epoch-30-avg-9.pt"], "epoch-30-avg-9.pt"),
        (["epoch-30-avg-9.pt", "epoch-30-avg-10.pt", "epoch-9.pt"], "epoch-30-avg-10.pt"),
        (["epoch-4.pt", "iter-90000-avg-2.pt", "checkpoint-95000.pt"], "epoch-4.pt"),
        (["iter-8000.pt", "checkpoint-12000.pt"], "checkpoint-12000.pt"),
    ],
)
def test_which_of_several_is_taken(folder: Path, names: list[str], taken: str) -> None:
    stored = folder / "exp" / "pretrained.pt"
    for name in names:
        shutil.copy(stored, stored.with_name(name))
    stored.unlink()
    assert resolve(str(folder)).files["weights"].name == taken


def test_sizes_come_from_shapes(folder: Path, tmp_path: Path) -> None:
    config, settings = load(folder).config, golden("zipformer").settings
    for ours, theirs in (
        ("width", "encoder_dim"), ("layers", "num_encoder_layers"), ("factor", "downsampling_factor"),
        ("heads", "num_heads"), ("key", "query_head_dim"), ("position", "pos_head_dim"),
        ("value", "value_head_dim"), ("kernel", "cnn_module_kernel"),
    ):  # fmt: skip
        assert [getattr(stack, ours) for stack in config.stacks] == settings[theirs]
    assert (config.width, config.position_width, config.vocab_size, config.causal) == (32, 8, 12, False)
    model = load(write_icefall(tmp_path / "causal", "causal"))
    assert model.config.causal and [s.heads for s in model.config.stacks] == [2, 4, 2]
    assert (model.blank_id, model.subsampling_rate, model.capabilities) == (0, 4, ("ctc",))


def test_what_shapes_leave_open_may_be_stated(tmp_path: Path) -> None:
    folder = write_icefall(tmp_path / "causal", "causal")
    stated = folder / "exp" / "icefall.yaml"
    stated.unlink()
    with pytest.raises(CheckpointError, match=r"cannot be split into parts of \d+.*icefall.yaml"):
        load(folder)
    # A checkpoint of the training itself holds its options, and the paths it was started with.
    more = {"pos_head_dim": "4,2,3", "feature_dim": 80, "exp_dir": PosixPath("zipformer/exp"), "epoch": 3}
    save(folder, state_of(golden("causal")), **more)
    assert [s.position for s in load(folder).config.stacks] == [4, 2, 3]
    for content, message in (
        ("pos_head_dim: [4, 2]", "expected an integer > 0, or 3 of them"),
        ("pos_head_dim: none", "expected an integer > 0"),
        ("pos_head_dim: 0", "expected an integer > 0"),
        ("feature_dim: 40", "which 40 bins do not give"),
        ("feature_dim: wide", "feature_dim: expected an integer >= 7"),
        ("causal: true", "unknown causal; it may change the network"),
        ("- 1", "expected a mapping"),
    ):
        stated.write_text(content)
        with pytest.raises(CheckpointError, match=message):
            load(folder)


def test_a_transducer_beside_it_is_reported(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = {**state_of(golden("zipformer")), "joiner.output_linear.weight": torch.ones(2, 2)}
    save(folder, state)
    with caplog.at_level(logging.WARNING):
        assert load(folder).load_report.unexpected == ("joiner.output_linear.weight",)
    assert "joiner.output_linear.weight" in caplog.text
    save(folder, {k: v for k, v in state.items() if "ctc_output" not in k})
    with pytest.raises(CheckpointError, match="no CTC layer to decode with; a transducer alone"):
        load(folder)


@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ("encoder_embed.convnext", "holds no encoder_embed.convnext.pointwise_conv1.weight"),
        ("encoder.encoders", "holds no encoder.encoders.0"),
        ("encoder.encoders.1.encoder.layers.1.norm", "lacks 2 tensors.*layers.1.norm"),
        ("encoder.encoders.2.out_combiner", "lacks 1 tensors.*out_combiner.bypass_scale"),
        ("encoder.encoders.0.layers.0.self_attn_weights.in_proj", "holds no .*in_proj.weight"),
    ],
)
def test_other_networks_are_refused_by_name(folder: Path, drop: str, message: str) -> None:
    save(folder, {k: v for k, v in state_of(golden("zipformer")).items() if not k.startswith(drop)})
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_malformed_files_are_named(folder: Path) -> None:
    weights, state = folder / "exp" / "pretrained.pt", state_of(golden("zipformer"))
    torch.save(state, weights)
    with pytest.raises(CheckpointError, match=r"pretrained\.pt: expected named tensors under the key model"):
        load(folder)
    save(folder, {**state, "encoder.encoders.0.layers.0.norm.bias": torch.ones(4, 4)})
    with pytest.raises(CheckpointError, match=r"norm\.bias: expected 1 axes"):
        load(folder)
    save(folder, state, oops=pytest.raises)
    with pytest.raises(CheckpointError, match="not a readable PyTorch file of plain tensors"):
        load(folder)


def test_symbols_are_those_that_fit(folder: Path) -> None:
    tokenizer = load(folder).tokenizer
    assert tokenizer.decode([3, 6, 7, 5, 1, 2, 4, 0]) == " theab  a"
    assert tokenizer.encode("the a") == [3, 4]
    other = folder / "data" / "lang_phone"
    other.mkdir()
    (other / "tokens.txt").write_text("<eps> 0\nAA 1\n")
    (folder / "data" / "lang_bpe_12").rename(folder / "data" / "lang_char")
    assert load(folder).tokenizer.decode([3, 6, 7, 5, 1, 2, 4, 0]) == " theab  a"
    (other / "tokens.txt").write_text("".join(f"x{i} {i}\n" for i in range(12)))
    with pytest.raises(CheckpointError, match="fit and differ; keep one of them"):
        load(folder)
    (other / "tokens.txt").write_text("<eps> 0\nAA 1\n")
    (folder / "data" / "lang_char" / "tokens.txt").write_text("<blk> 0\n")
    with pytest.raises(CheckpointError, match="symbols for 12 labels"):
        load(folder)


def test_a_sentencepiece_model_serves_alone(folder: Path, tmp_path: Path) -> None:
    import sentencepiece

    symbols = folder / "data" / "lang_bpe_12"
    text = tmp_path / "text.txt"
    text.write_text("the old sea\na bad deed\n" * 20)
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(symbols / "bpe"), vocab_size=14, model_type="unigram",
        user_defined_symbols=["<blk>", "<sos/eos>"], unk_id=2, bos_id=-1, eos_id=-1, minloglevel=2,
    )  # fmt: skip
    (symbols / "tokens.txt").unlink()
    (symbols / "bpe.vocab").unlink()
    state = state_of(golden("zipformer"))
    for kind in ("weight", "bias"):
        name = f"ctc_output.1.{kind}"
        state[name] = torch.cat([state[name], state[name][: 14 - len(TOKENS)]])
    save(folder, state)
    tokenizer = load(folder).tokenizer
    ids = tokenizer.encode("the old sea")
    assert tokenizer.vocab_size == 14 and tokenizer.decode([0, *ids, 1]).strip() == "the old sea"
    shutil.move(symbols / "bpe.model", symbols / "bbpe.model")
    with pytest.raises(CheckpointError, match="stand for bytes in icefall's own code"):
        load(folder)
