"""WeNet folders: what is recognised, what is read, and what is refused with a reason."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
import yaml
from helpers.wenet_checkpoints import UNITS, golden, state_of, write_wenet
from oasr.checkpoints import load_model, resolve
from oasr.checkpoints.sections import Section
from oasr.checkpoints.wenet_cmvn import read_cmvn
from oasr.errors import CheckpointError

CPU = torch.device("cpu")


def load(folder: Path, dtype: str = "float32"):
    return load_model(str(folder), CPU, dtype)


def edit(folder: Path, **changes) -> None:
    """Change train.yaml: `a__b=v` sets b under a, None removes it."""
    train = yaml.safe_load((folder / "train.yaml").read_text("utf-8"))
    for key, value in changes.items():
        *parents, last = key.split("__")
        place = train
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    (folder / "train.yaml").write_text(yaml.safe_dump(train), "utf-8")


def forward(model) -> torch.Tensor:
    with torch.inference_mode():
        features = golden("u2pp").features(0)
        features = features if model.config.cmvn is None else model.config.cmvn(features)
        return model.forward_offline(features[None], torch.tensor([97])).log_probs[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_wenet(tmp_path / "exp", "u2pp")


def test_a_folder_or_its_weights_are_recognised(folder: Path) -> None:
    for path in (folder, folder / "final.pt"):
        found = resolve(str(path))
        assert found.format == "wenet"
        assert set(found.files) == {"config", "weights", "cmvn", "units"}
    (folder / "final.pt").rename(folder / "avg_30.pt")
    assert resolve(str(folder)).files["weights"].name == "avg_30.pt"


def test_everything_is_used_and_the_files_speak(folder: Path) -> None:
    model = load(folder)
    assert model.load_report.missing == model.load_report.unexpected == ()
    assert model.capabilities == ("ctc", "ctc_aed_rescoring")
    assert (model.blank_id, model.reverse_weight, model.vocab_size) == (0, 0.3, len(UNITS))
    assert (model.config.decoder.sos_id, model.config.decoder.eos_id) == (2, 2)
    assert (model.frame_shift_ms, model.subsampling_rate, model.frontend.sample_rate) == (10, 4, 16000)
    assert model.tokenizer.decode([3, 4, 12 - 1, 5, 2]) == "ab c"
    torch.testing.assert_close(forward(model), golden("u2pp").log_probs[0], atol=1e-4, rtol=0)


def test_statistics_come_from_the_weights_or_from_either_file(tmp_path: Path) -> None:
    inside = write_wenet(tmp_path / "inside", "u2pp", cmvn_in_weights=True)
    torch.testing.assert_close(forward(load(inside)), golden("u2pp").log_probs[0], atol=1e-4, rtol=0)
    json_file = write_wenet(tmp_path / "json", "conformer-bn")
    (inside / "global_cmvn").write_text((json_file / "global_cmvn").read_text("utf-8"), "utf-8")
    torch.testing.assert_close(forward(load(inside)), golden("u2pp").log_probs[0], atol=1e-4, rtol=0)
    bare = write_wenet(tmp_path / "bare", "u2pp")
    (bare / "global_cmvn").unlink()
    with pytest.raises(CheckpointError, match="normalised by global_cmvn"):
        load(bare)
    edit(bare, cmvn=None)
    assert load(bare).config.cmvn is None


def test_statistics_of_unequal_length_are_refused(tmp_path: Path) -> None:
    folder = write_wenet(tmp_path, "u2pp", cmvn_in_weights=True)
    state = torch.load(folder / "final.pt")
    state["encoder.global_cmvn.istd"] = state["encoder.global_cmvn.istd"][1:]
    torch.save(state, folder / "final.pt")
    with pytest.raises(CheckpointError, match=r"final\.pt: .*global_cmvn\.istd: expected two vectors"):
        load(folder)


@pytest.mark.parametrize(
    "content", ["[ 1 2 3", "{}", '{"mean_stat": [1], "var_stat": [1, 2], "frame_num": 1}', "", "[ ]", "\0B"]
)
def test_malformed_statistics_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "global_cmvn"
    path.write_text(content, "utf-8")
    with pytest.raises(CheckpointError, match="corpus statistics"):
        read_cmvn(path)


def test_both_forms_of_statistics_mean_the_same(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "json"
    text.write_text(" [\n  10 20 5\n  30 100 0 ]\n")
    other.write_text('{"mean_stat": [10, 20], "var_stat": [30, 100], "frame_num": 5}')
    x = torch.tensor([[1.0, -3.0]])
    torch.testing.assert_close(read_cmvn(text)(x), read_cmvn(other)(x))
    torch.testing.assert_close(read_cmvn(text)(x), torch.tensor([[-(2**-0.5), -3.5]]))


def test_a_decoder_may_be_absent(folder: Path) -> None:
    train = yaml.safe_load((folder / "train.yaml").read_text("utf-8"))
    train["decoder"] = None
    (folder / "train.yaml").write_text(yaml.safe_dump(train), "utf-8")
    state = {k: v for k, v in torch.load(folder / "final.pt").items() if not k.startswith("decoder")}
    torch.save(state, folder / "final.pt")
    model = load(folder)
    assert model.capabilities == ("ctc",)
    assert model.decoder is None and model.load_report.unexpected == ()


def test_older_files_that_name_less(folder: Path) -> None:
    """Before 2023 train.yaml had no tokenizer section, and the sentence mark was the last label."""
    edit(folder, tokenizer=None, tokenizer_conf=None, ctc=None, ctc_conf=None, model=None, cmvn=None)
    edit(folder, cmvn_conf=None, cmvn_file="exp/global_cmvn", is_json_cmvn=False)
    model = load(folder)
    assert (model.config.decoder.sos_id, model.config.decoder.eos_id, model.blank_id) == (11, 11, 0)
    torch.testing.assert_close(forward(model), golden("u2pp").log_probs[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "squeezeformer"}, "encoder 'squeezeformer': only conformer and transformer"),
        ({"decoder": "sanm_decoder"}, "only transformer and bitransformer"),
        ({"model": "transducer"}, "model: only 'asr_model'"),
        ({"encoder_conf__mlp_type": "moe"}, "mlp_type: only 'position_wise_feed_forward'"),
        ({"encoder_conf__layer_norm_type": "rms_norm"}, "layer_norm_type: only 'layer_norm'"),
        ({"encoder_conf__input_layer": "dwconv2d4"}, "subsampling: expected one of linear, conv2d2"),
        ({"encoder_conf__pos_enc_layer_type": "rope_pos"}, "positions: expected one of abs_pos"),
        ({"encoder_conf__activation_type": "mish"}, "activation: expected one of relu"),
        ({"encoder_conf__causal": False}, "cnn_module_kernel: expected an odd number"),
        (
            {"encoder_conf__output_size": "wide"},
            "output_size: expected an integer >= 1 and at most 1048576, found 'wide'",
        ),
        ({"encoder_conf__attention_heads": 3}, "width 16 cannot be split into 3 heads"),
        ({"encoder_conf__window": 3}, "encoder_conf: unknown window; it may change the network"),
        ({"decoder_conf__input_layer": "no_pos"}, "input_layer: only 'embed'"),
        ({"dataset_conf__feats_type": "mfcc"}, "feats_type: only 'fbank'"),
        ({"dataset_conf__fbank_conf__window_type": "kaiser"}, "window_type: expected one of povey"),
        ({"dataset_conf__fbank_conf__num_mel_bins": 40}, "40 mel bins, the statistics 16"),
        ({"model_conf__apply_non_blank_embedding": True}, "apply_non_blank_embedding: only False"),
        ({"tokenizer": "whisper"}, "tokenizer 'whisper': expected char, bpe or sentencepiece"),
        ({"tokenizer_conf__special_tokens": {"<sos>": 12, "<eos>": 2}}, "must be below 12"),
        ({"encoder_conf": [1]}, "encoder_conf: expected a mapping, found list"),
        ({"encoder_conf__num_blocks": 3}, "lacks 37 tensors.*encoder.encoders.2"),
        ({"encoder_conf__linear_units": 25}, "expected shape"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_other_networks_are_refused_by_name(folder: Path, changes: dict, message: str) -> None:
    edit(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_numbers_that_yaml_takes_for_strings(folder: Path) -> None:
    text = (folder / "train.yaml").read_text("utf-8")
    text = text.replace("encoder_conf:\n", "encoder_conf:\n  norm_eps: 1e-5\n  conv_norm_eps: 1e-5\n")
    (folder / "train.yaml").write_text(text, "utf-8")
    torch.testing.assert_close(forward(load(folder)), golden("u2pp").log_probs[0], atol=1e-4, rtol=0)


def test_malformed_files_are_named(folder: Path) -> None:
    weights, config = folder / "final.pt", folder / "train.yaml"
    kept = config.read_text("utf-8")
    for content, message in (
        ("a: [", "train.yaml: cannot be read as YAML"),
        ("- 1", "expected a mapping, found list"),
        ("a: !!python/object/apply:os.getcwd []", "cannot be read as YAML"),
    ):
        config.write_text(content)
        with pytest.raises(CheckpointError, match=message):
            load(folder)
    config.write_text(kept)
    state = torch.load(weights)
    torch.save({"encoder.x": torch.ones(1)}, weights)
    with pytest.raises(CheckpointError, match=r"final.pt: holds no ctc.ctc_lo.weight"):
        load(folder)
    torch.save([1], weights)
    with pytest.raises(CheckpointError, match="expected named tensors, found list"):
        load(folder)
    torch.save({**state, "oops": Path("x")}, weights)
    with pytest.raises(CheckpointError, match="not a readable PyTorch file of plain tensors"):
        load(folder)
    (folder / "units.txt").unlink()
    torch.save(state, weights)
    with pytest.raises(CheckpointError, match=r"no symbols found; put units\.txt"):
        load(folder)


@pytest.mark.parametrize("change", [lambda lines: lines[:-1], lambda lines: [*lines, f"x {len(lines)}"]])
def test_a_table_of_another_model_is_refused(folder: Path, change) -> None:
    units = folder / "units.txt"
    units.write_text("\n".join(change(units.read_text("utf-8").splitlines())) + "\n", "utf-8")
    with pytest.raises(CheckpointError, match=r"units\.txt: expected symbols for the \d+ labels"):
        load(folder)


def test_weights_without_their_configuration_say_what_is_missing(folder: Path) -> None:
    (folder / "train.yaml").unlink()
    with pytest.raises(CheckpointError, match=r"train\.yaml beside them"):
        load(folder)


def test_strangers_among_the_tensors_are_reported(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = state_of(golden("u2pp"))
    state["encoder.encoders.0.concat_linear.weight"] = torch.ones(16, 32)
    state["encoder.adapter.weight"] = torch.ones(2)
    torch.save(state, folder / "final.pt")
    with caplog.at_level(logging.WARNING):
        assert load(folder).load_report.unexpected == ("encoder.adapter.weight",)
    assert "encoder.adapter.weight" in caplog.text


@pytest.mark.parametrize("part", ["norm.weight", "depthwise_conv.weight"])
def test_a_folded_norm_needs_floats(part: str, tmp_path: Path) -> None:
    folder = write_wenet(tmp_path, "conformer-bn")
    state = torch.load(folder / "final.pt")
    name = f"encoder.encoders.0.conv_module.{part}"
    torch.save({**state, name: state[name].to(torch.int8)}, folder / "final.pt")
    with pytest.raises(CheckpointError, match=rf"tensor for {name}: expected float32.*found int8"):
        load(folder)


def test_a_batch_norm_needs_all_its_parts(tmp_path: Path) -> None:
    folder = write_wenet(tmp_path / "bn", "conformer-bn")
    state = torch.load(folder / "final.pt")
    del state["encoder.encoders.1.conv_module.norm.running_mean"]
    torch.save(state, folder / "final.pt")
    with pytest.raises(CheckpointError, match=r"encoders.1.conv_module.norm.running_mean"):
        load(folder)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_other_compute_types_stay_close(folder: Path, dtype: str) -> None:
    got, wanted = forward(load(folder, dtype)), golden("u2pp").log_probs[0]
    assert got.dtype == torch.float32
    assert 0 < (got - wanted).abs().mean() < 0.1


def test_sections_know_their_values() -> None:
    section = Section({"a": None, "b": True, "c": 1.5}, "x.yaml")
    assert section.integer("a", 3) == 3
    for call, message in (
        (lambda: section.integer("b"), "x.yaml: b: expected an integer"),
        (lambda: section.number("b", 1.0), "expected a number"),
        (lambda: section.flag("c", True), "expected true or false, found 1.5"),
        (lambda: section.text("c", ""), "expected a string"),
    ):
        with pytest.raises(CheckpointError, match=message):
            call()
    section.finish()
