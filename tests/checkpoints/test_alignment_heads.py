"""Which heads follow the speech: as each checkpoint format says it, and what happens when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.whisper_checkpoints import (
    VOCAB,
    generation_config,
    oracle,
    write_ctranslate2,
    write_hf,
    write_openai,
    write_tokenizer,
)
from oasr.checkpoints import catalog, load_model
from oasr.checkpoints.files import read_json
from oasr.checkpoints.whisper_heads import released_heads
from oasr.checkpoints.whisper_tokens import whisper_tokens
from oasr.errors import CheckpointError
from oasr.models.whisper_config import WhisperDims
from oasr.tokenizers.huggingface import HuggingFaceTokenizer

UPPER_HALF = tuple((layer, head) for layer in (1, 2) for head in range(4))  # of three layers of four heads


def openai_folder(model, folder):
    """The `.pt` file and a tokenizer beside it."""
    folder.mkdir()
    write_tokenizer(folder)
    write_openai(model, folder / "model.pt")
    return folder


@pytest.mark.parametrize(
    ("write", "heads"),
    [
        (lambda model, folder: write_hf(model, folder, "safetensors", generation_config()), ((0, 1), (2, 3))),
        (
            lambda model, folder: write_hf(
                model, folder, "safetensors", generation_config(alignment_heads=...)
            ),
            UPPER_HALF,
        ),
        (write_ctranslate2, ((0, 1),)),
        (openai_folder, UPPER_HALF),
    ],
)
def test_every_format(write, heads, tmp_path) -> None:
    path = write(oracle(), tmp_path / "m")
    assert load_model(str(path), torch.device("cpu"), "float32").alignment_heads == heads


@pytest.mark.parametrize(
    "said", [5, {"1": 2}, [1, 2], [[1]], [[1, 2, 3]], [[-1, 0]], [["1", 2]], [[True, 1]]]
)
def test_malformed_lists_are_named(said, tmp_path) -> None:
    tokenizer = HuggingFaceTokenizer.from_file(write_tokenizer(tmp_path))
    with pytest.raises(CheckpointError, match=r"alignment_heads: expected a list of \[layer, head\]"):
        whisper_tokens(tokenizer, VOCAB, generation_config(alignment_heads=said), {})


TINY = WhisperDims(80, 51864, 384, 4, 6, 1536, 1500, 4, 6, 1536, 448)


def test_released_sizes_have_their_published_heads() -> None:
    base = replace(
        TINY,
        width=512,
        vocab_size=51865,
        decoder_layers=6,
        encoder_layers=6,
        encoder_heads=8,
        decoder_heads=8,
    )
    large = replace(base, width=1280, decoder_layers=32, decoder_heads=20, encoder_heads=20)
    turbo = replace(large, vocab_size=51866, decoder_layers=4)
    for dims, count in (
        (TINY, 8), (replace(TINY, vocab_size=51865), 6), (base, 8), (replace(base, vocab_size=51864), 5),
        (turbo, 6), (replace(turbo, decoder_layers=32), 10),
    ):  # fmt: skip
        heads = released_heads(dims)
        assert len(heads) == count == len(set(heads))
        assert all(layer < dims.decoder_layers and head < dims.decoder_heads for layer, head in heads)
    # large-v1 and large-v2 have one size and different heads.
    assert released_heads(large) == () == released_heads(replace(TINY, decoder_layers=5))


@pytest.mark.weights("tiny.en", "base")
@pytest.mark.parametrize("name", ["tiny.en", "base"])
def test_released_heads_equal_those_of_the_converted_models(name: str) -> None:
    model = load_model(name, torch.device("cpu"), "float32")
    stored = read_json(catalog.locate(name) / "config.json")["alignment_heads"]
    assert [list(pair) for pair in model.alignment_heads] == stored
    assert released_heads(model.config.dims) == model.alignment_heads
