"""One random model in every format gives transformers' logits."""

from __future__ import annotations

import json
import logging

import pytest
import torch
from helpers.whisper_checkpoints import (
    IDS,
    VOCAB,
    generation_config,
    oracle,
    oracle_logits,
    write_ctranslate2,
    write_hf,
    write_openai,
    write_tokenizer,
)
from oasr.checkpoints import load_model, resolve
from oasr.errors import CheckpointError
from safetensors.torch import load_file, save_file

CPU = torch.device("cpu")


def logits_of(model, features: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        encoded = model.encode_offline(features, torch.full((len(features),), features.shape[1]))
        return model.decoder.forward_teacher(tokens, encoded)


def example(reference, seed: int = 1, length: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    config, generator = reference.config, torch.Generator().manual_seed(seed)
    features = torch.randn(2, 2 * config.max_source_positions, config.num_mel_bins, generator=generator)
    return features, torch.randint(config.vocab_size, (2, length), generator=generator)


@pytest.fixture(scope="module")
def reference():
    return oracle()


def assert_same(model, reference, tolerance: float = 1e-4) -> None:
    features, tokens = example(reference)
    expected = oracle_logits(reference, features, tokens)
    assert expected.std() > 0.5  # a degenerate oracle would prove nothing
    torch.testing.assert_close(logits_of(model, features, tokens), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("kind", ["safetensors", "sharded", "bin", "bin-sharded"])
def test_hugging_face_snapshots(kind: str, reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / kind, kind, generation_config())
    if kind == "sharded":
        assert (folder / "model.safetensors.index.json").is_file()
    model = load_model(str(folder), CPU, "float32")
    assert model.checkpoint.format == "huggingface"
    assert model.load_report.missing == model.load_report.unexpected == ()
    assert_same(model, reference)


def test_hugging_face_weights_named_directly(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "safetensors", generation_config())
    assert_same(load_model(str(folder / "model.safetensors"), CPU, "float32"), reference)


def test_base_model_without_prefix(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "bin", generation_config())
    state = {k.removeprefix("model."): v for k, v in reference.model.state_dict().items()}
    torch.save(state, folder / "pytorch_model.bin")
    assert_same(load_model(str(folder), CPU, "float32"), reference)


def test_openai_file_and_folder(reference, tmp_path) -> None:
    path = write_openai(reference, tmp_path / "release" / "tiny.pt")
    write_tokenizer(path.parent)
    for spec in (path, path.parent):
        model = load_model(str(spec), CPU, "float32")
        assert model.checkpoint.format == "openai"
        assert_same(model, reference)


def test_openai_inner_size_is_read_from_the_weights(tmp_path) -> None:
    reference = oracle(encoder_ffn_dim=24, decoder_ffn_dim=56)
    path = write_openai(reference, tmp_path / "odd.pt")
    write_tokenizer(tmp_path)
    assert_same(load_model(str(path), CPU, "float32"), reference)


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [("float32", 1e-4), ("float16", 5e-2), ("bfloat16", 4e-1), ("int16", 2e-1), ("int8", 6e-1)],
)
def test_ctranslate2_in_every_storage_type(kind: str, tolerance: float, reference, tmp_path) -> None:
    model = load_model(str(write_ctranslate2(reference, tmp_path / kind, kind)), CPU, "float32")
    assert model.checkpoint.format == "ctranslate2"
    assert model.load_report.missing == model.load_report.unexpected == ()
    assert_same(model, reference, tolerance)


def test_large_v3_shape(tmp_path) -> None:
    reference = oracle(num_mel_bins=128, vocab_size=51866, encoder_layers=1, decoder_layers=1)
    folder = write_hf(reference, tmp_path / "v3", "safetensors", generation_config())
    model = load_model(str(folder), CPU, "float32")
    assert model.frontend.n_mels == 128
    assert_same(model, reference)


def test_distilled_shape_two_decoder_layers(tmp_path) -> None:
    reference = oracle(encoder_layers=5, decoder_layers=2)
    assert_same(load_model(str(write_ctranslate2(reference, tmp_path / "d")), CPU, "float32"), reference)
    snapshot = write_hf(reference, tmp_path / "h", "safetensors", generation_config())
    assert_same(load_model(str(snapshot), CPU, "float32"), reference)


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 1.0), ("float16", 0.1), ("int8", 0.6)])
def test_compute_types(dtype: str, tolerance: float, reference, tmp_path) -> None:
    model = load_model(str(write_ctranslate2(reference, tmp_path / "m")), CPU, dtype)
    features, tokens = example(reference)
    logits = logits_of(model, features, tokens)
    assert logits.dtype == torch.float32
    expected = oracle_logits(reference, features, tokens)
    assert 0 < (logits - expected).abs().max() < tolerance


def test_head_stays_tied_to_the_embedding(reference, tmp_path) -> None:
    model = load_model(str(write_ctranslate2(reference, tmp_path / "m")), CPU, "float32")
    assert model.decoder.head.weight is model.decoder.tokens.weight
    assert not any(p.requires_grad for p in model.parameters()) and not model.training


def test_missing_tensors_are_named(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "bin", generation_config())
    state = torch.load(folder / "pytorch_model.bin")
    del state["model.decoder.layers.1.fc2.bias"], state["model.encoder.layers.0.self_attn.v_proj.weight"]
    torch.save(state, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError) as caught:
        load_model(str(folder), CPU, "float32")
    assert "lacks 2 tensors" in str(caught.value)
    assert "model.decoder.layers.1.fc2.bias" in str(caught.value)
    assert "model.encoder.layers.0.self_attn.v_proj.weight" in str(caught.value)


def test_unexpected_tensors_are_reported(reference, tmp_path, caplog) -> None:
    folder = write_hf(reference, tmp_path / "hf", "bin", generation_config())
    state = torch.load(folder / "pytorch_model.bin")
    torch.save({**state, "model.decoder.adapter.weight": torch.zeros(2)}, folder / "pytorch_model.bin")
    with caplog.at_level(logging.WARNING):
        model = load_model(str(folder), CPU, "float32")
    assert model.load_report.unexpected == ("model.decoder.adapter.weight",)
    assert "model.decoder.adapter.weight" in caplog.text


def test_wrong_shape_is_named(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "bin", generation_config())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "decoder_ffn_dim": 52}))
    with pytest.raises(
        CheckpointError, match=r"decoder\.layers\.0\.ffn\.up\.weight: expected shape \[52, 16\]"
    ):
        load_model(str(folder), CPU, "float32")


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("model.decoder.layers.0.fc1.weight", r"decoder\.layers\.0\.ffn\.up\.weight"),
        # One third of a joined matrix: with the others it would become floats.
        ("model.decoder.layers.0.self_attn.q_proj.weight", r"model\.decoder.*q_proj\.weight"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_quantised_weights_are_no_floats(name, ours, dtype, reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "safetensors", generation_config())
    state = load_file(folder / "model.safetensors")
    scales = state[name].abs().amax(1)
    state |= {name: (state[name] / scales[:, None] * 100).to(dtype), name.replace("weight", "SCB"): scales}
    save_file(state, folder / "model.safetensors")
    kind = str(dtype).removeprefix("torch.")
    with pytest.raises(CheckpointError, match=rf"tensor for {ours}: expected float32.*, found {kind};"):
        load_model(str(folder), CPU, "float32")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_floats_of_any_width_are_read(dtype, reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "bin", generation_config())
    state = torch.load(folder / "pytorch_model.bin")
    torch.save({k: v.to(dtype) for k, v in state.items()}, folder / "pytorch_model.bin")
    weight = load_model(str(folder), CPU, "float32").decoder.tokens.weight
    assert torch.equal(weight, state["model.decoder.embed_tokens.weight"].to(dtype).float())


def test_an_output_head_of_its_own_is_refused(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "bin", generation_config())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    state = torch.load(folder / "pytorch_model.bin")
    head = state.pop("proj_out.weight")
    for stored in (state, {**state, "proj_out.weight": head}):
        torch.save(stored, folder / "pytorch_model.bin")
        assert load_model(str(folder), CPU, "float32").load_report.unexpected == ()
    for other in (head + 1, head[1:]):
        torch.save({**state, "proj_out.weight": other}, folder / "pytorch_model.bin")
        with pytest.raises(CheckpointError, match=r"config\.json: tie_word_embeddings false with proj_out"):
            load_model(str(folder), CPU, "float32")


def test_pickled_code_is_refused(reference, tmp_path) -> None:
    class Payload:
        def __reduce__(self):
            return (print, ("ran",))

    path = write_openai(reference, tmp_path / "evil.pt")
    write_tokenizer(tmp_path)
    torch.save({"dims": Payload(), "model_state_dict": {}}, path)
    with pytest.raises(CheckpointError, match="plain tensors"):
        load_model(str(path), CPU, "float32")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "relu"}, "activation_function gelu"),
        ({"d_model": 0}, "d_model: expected an integer > 0"),
        ({"encoder_attention_heads": 5}, "cannot be split into 5 heads"),
        ({"model_type": "bart"}, "'bart'; known: hubert.*whisper"),
        ({"vocab_size": 200}, "outside the model's vocabulary of 200"),
        ({"quantization_config": {"quant_method": "gptq"}}, r"quantization_config \(gptq\): .*dequantize"),
    ],
)
def test_hugging_face_config_is_checked(change: dict, message: str, reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "safetensors", generation_config())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(CheckpointError, match=message):
        load_model(str(folder), CPU, "float32")


def test_shard_index_is_checked(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "bin-sharded", generation_config())
    (folder / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(CheckpointError, match="1 of 2 shards are absent: pytorch_model-00002"):
        load_model(str(folder), CPU, "float32")
    (folder / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "../../secret.bin"}}')
    with pytest.raises(CheckpointError, match="not a plain file name"):
        load_model(str(folder), CPU, "float32")


def test_broken_files_are_checkpoint_errors(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "safetensors", generation_config())
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(CheckpointError, match="not a readable safetensors file"):
        load_model(str(folder), CPU, "float32")
    (folder / "config.json").write_text("[1]")
    with pytest.raises(CheckpointError, match="no known checkpoint format"):
        resolve(str(folder))


def test_missing_tokenizer_says_what_to_copy(reference, tmp_path) -> None:
    folder = write_ctranslate2(reference, tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"no tokenizer found.*copy tokenizer\.json"):
        load_model(str(folder), CPU, "float32")


def test_openai_without_any_tokenizer(reference, tmp_path) -> None:
    path = write_openai(reference, tmp_path / "tiny.pt")
    with pytest.raises(CheckpointError, match=f"vocabulary of {VOCAB}"):
        load_model(str(path), CPU, "float32")


def test_resolved_checkpoint_lists_its_files(reference, tmp_path) -> None:
    folder = write_hf(reference, tmp_path / "hf", "safetensors", generation_config())
    found = resolve(str(folder))
    assert found.name == str(folder) and found.path == folder
    assert set(found.files) == {"config", "generation_config", "tokenizer", "weights"}
    assert found.tokenizer_path == folder / "tokenizer.json"
    assert IDS["<|endoftext|>"] == load_model(str(folder), CPU, "float32").eos_id


@pytest.mark.weights
def test_openai_borrows_the_tokenizer_of_an_installed_model_of_its_vocabulary(tmp_path) -> None:
    reference = oracle(vocab_size=51864, encoder_layers=1, decoder_layers=1)
    path = write_openai(reference, tmp_path / "tiny.en.pt")
    model = load_model(str(path), CPU, "float32")
    assert model.tokenizer.decode(model.tokenizer.encode(" hello")) == " hello"
    assert not model.is_multilingual and len(model.suppress_ids) == 90
    assert_same(model, reference)
