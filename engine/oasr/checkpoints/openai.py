"""The released Whisper `.pt` files: {"dims": ..., "model_state_dict": ...}."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.contents import CheckpointContents, ResolvedCheckpoint, gather
from oasr.checkpoints.files import folder_of, integer, load_torch, tensors_of
from oasr.checkpoints.whisper_heads import released_heads
from oasr.checkpoints.whisper_names import openai as whisper_recipe
from oasr.checkpoints.whisper_tokens import whisper_tokens
from oasr.errors import CheckpointError
from oasr.models.whisper_config import WhisperConfig, WhisperDims

if TYPE_CHECKING:
    from oasr.tokenizers.base import Tokenizer


class OpenAIFormat:
    """One `.pt` file, alone or as the only one in its folder."""

    looks_for = "one .pt file with dims and model_state_dict"

    def specificity(self, path: Path) -> int:
        """10 for a zip-format `.pt` file, or a folder that holds exactly one, else 0."""
        file = _weights_of(path)
        return 10 if file is not None and zipfile.is_zipfile(file) else 0

    def files(self, path: Path) -> Mapping[str, Path]:
        """The weights, and a tokenizer that somebody put beside them."""
        weights, tokenizer = _weights_of(path), folder_of(path) / "tokenizer.json"
        found = {} if weights is None else {"weights": weights}
        return {**found, "tokenizer": tokenizer} if tokenizer.is_file() else found

    def read(self, checkpoint: ResolvedCheckpoint) -> CheckpointContents:
        """Read sizes and weights; the tokenizer comes from elsewhere, for the file holds none."""
        path = checkpoint.files["weights"]
        stored = load_torch(path)
        if not isinstance(stored, dict) or not {"dims", "model_state_dict"} <= set(stored):
            raise CheckpointError(
                f"{path}: expected the keys dims and model_state_dict of a Whisper release. WeNet's weights "
                "need their train.yaml beside them, icefall's their tokens.txt or bpe.model"
            )
        state = tensors_of(stored["model_state_dict"], path)
        if not isinstance(stored["dims"], dict):
            raise CheckpointError(
                f"{path}: dims: expected named sizes, found {type(stored['dims']).__name__}"
            )
        dims = _dims(stored["dims"], state, path)
        tokenizer = _tokenizer(folder_of(path), dims.vocab_size)
        tokens = whisper_tokens(tokenizer, dims.vocab_size, {}, {})
        tokens = replace(tokens, alignment_heads=released_heads(dims))
        return CheckpointContents(
            architecture="whisper", config=WhisperConfig(dims, tokens), tokenizer=tokenizer,
            **gather(whisper_recipe(dims), state, state.__getitem__),
        )  # fmt: skip


def _weights_of(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix == ".pt" else None
    found = sorted(path.glob("*.pt"))
    return found[0] if len(found) == 1 else None


def _dims(dims: dict[str, Any], state: Mapping[str, Any], path: Path) -> WhisperDims:
    def inner(side: str, default: int) -> int:
        # `dims` leaves it out; released models have four times the width.
        weight = state.get(f"{side}.blocks.0.mlp.0.weight")
        return int(weight.shape[0]) if weight is not None and weight.dim() else default

    width = integer(dims, "n_audio_state", path)
    if integer(dims, "n_text_state", path) != width:
        raise CheckpointError(f"{path}: n_audio_state {width} and n_text_state {dims['n_text_state']} differ")
    return WhisperDims(
        n_mels=integer(dims, "n_mels", path),
        vocab_size=integer(dims, "n_vocab", path),
        width=width,
        encoder_layers=integer(dims, "n_audio_layer", path),
        encoder_heads=integer(dims, "n_audio_head", path),
        encoder_ffn=inner("encoder", 4 * width),
        encoder_positions=integer(dims, "n_audio_ctx", path),
        decoder_layers=integer(dims, "n_text_layer", path),
        decoder_heads=integer(dims, "n_text_head", path),
        decoder_ffn=inner("decoder", 4 * width),
        decoder_positions=integer(dims, "n_text_ctx", path),
    )


def _tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """tokenizer.json beside the weights, else that of a catalog model with the same vocabulary size."""
    from oasr.checkpoints import catalog
    from oasr.tokenizers.huggingface import HuggingFaceTokenizer

    beside = HuggingFaceTokenizer.from_folder(folder)
    if beside is not None:
        return beside
    matching = [entry.name for entry in catalog.entries() if entry.vocab_size == vocab_size]
    for name in matching:
        found = catalog.locate(name)
        tokenizer = None if found is None else HuggingFaceTokenizer.from_folder(found)
        if tokenizer is not None:
            return tokenizer
    raise CheckpointError(
        f"{folder}: a .pt file holds no tokenizer and no tokenizer.json lies beside it; put the "
        f"tokenizer.json of a Whisper model with a vocabulary of {vocab_size} there, or install one of "
        f"the catalog models that share it ({', '.join(matching) or 'none'})"
    )
