"""The audio encoder against transformers, in full and in short windows, and on real weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile as sf
import torch
from helpers.whisper_checkpoints import generation_config, oracle, oracle_of_ctranslate2, write_hf
from oasr.checkpoints import load_model

CLOSE = {"atol": 1e-4, "rtol": 0}


@pytest.fixture(scope="module")
def reference():
    return oracle(seed=4)


@pytest.fixture(scope="module")
def model(reference, tmp_path_factory):
    folder = write_hf(reference, tmp_path_factory.mktemp("m"), "safetensors", generation_config())
    return load_model(str(folder), torch.device("cpu"), "float32")


def hidden_of(reference, features: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return reference.model.encoder(features.transpose(1, 2)).last_hidden_state


def test_full_window(model, reference) -> None:
    features = torch.randn(3, 40, 8, generator=torch.Generator().manual_seed(0))
    out = model.encode_offline(features, torch.full((3,), 40))
    assert out.hidden.shape == (3, 20, 16) and out.lengths.tolist() == [20] * 3
    torch.testing.assert_close(out.hidden, hidden_of(reference, features), **CLOSE)


@pytest.mark.parametrize("frames", [2, 16, 38])
def test_short_window_is_a_model_with_a_short_position_table(frames: int, model) -> None:
    short = oracle(seed=4, max_source_positions=frames // 2)
    long = oracle(seed=4).state_dict()
    name = "model.encoder.embed_positions.weight"
    short.load_state_dict({**long, name: long[name][: frames // 2]})
    features = torch.randn(2, frames, 8, generator=torch.Generator().manual_seed(1))
    out = model.encode_offline(features, torch.full((2,), frames))
    torch.testing.assert_close(out.hidden, hidden_of(short, features), **CLOSE)


def test_geometry(model) -> None:
    assert model.frame_shift_ms * model.lfr_n * model.subsampling_rate == 20
    assert model.max_window_s == pytest.approx(0.4)  # 20 positions of 20 ms
    assert model.frontend.window_samples(1) == 6400


@pytest.mark.weights("tiny.en", "base")
@pytest.mark.parametrize("name", ["tiny.en", "base"])
def test_real_weights_on_real_speech(name: str, repo_root: Path) -> None:
    """Encoder output and decoder logits within 1e-4 of transformers' own code on the same weights."""
    from oasr.types import DecodingOptions

    model = load_model(name, torch.device("cpu"), "float32")
    reference = oracle_of_ctranslate2(model.checkpoint.path)
    samples, _ = sf.read(repo_root / "manifests" / "audio" / "LJ001-0061.flac", dtype="float32")
    window = torch.zeros(1, 480000)
    window[0, : len(samples)] = torch.from_numpy(samples)
    with torch.inference_mode():
        features, frames = model.frontend(window, torch.tensor([len(samples)]))
        out = model.encode_offline(features, frames)
        torch.testing.assert_close(out.hidden, hidden_of(reference, features), **CLOSE)
        text = model.tokenizer.encode(" the Roman letter was used side by side with the Gothic.")
        tokens = torch.tensor([[*model.prompt_tokens(DecodingOptions()), *text]])
        logits = model.decoder.forward_teacher(tokens, out)
        expected = reference(input_features=features.transpose(1, 2), decoder_input_ids=tokens).logits
    torch.testing.assert_close(logits, expected, **CLOSE)
    start = tokens.shape[1] - len(text)
    spoken = logits[0, start - 1 : -1].argmax(-1)
    assert (spoken == tokens[0, start:]).float().mean() > 0.6  # the weights do what they are for
