"""Whisper in the Hugging Face layout."""

from __future__ import annotations

from oasr.checkpoints.contents import CheckpointContents, gather
from oasr.checkpoints.files import integer, require_tokenizer
from oasr.checkpoints.hf import Snapshot
from oasr.checkpoints.whisper_names import huggingface
from oasr.checkpoints.whisper_tokens import whisper_tokens
from oasr.errors import CheckpointError
from oasr.models.whisper_config import WhisperConfig, WhisperDims

_HEAD = "proj_out.weight"


def convert(snapshot: Snapshot) -> CheckpointContents:
    """Contents of a `model_type: whisper` snapshot.

    generation_config.json goes before config.json for every token list.
    """
    dims = _dims(snapshot)
    tokenizer = require_tokenizer(snapshot.folder)
    tokens = whisper_tokens(tokenizer, dims.vocab_size, snapshot.generation, snapshot.config)
    prefix = "model." if any(name.startswith("model.") for name in snapshot.names) else ""
    # The output head is the token embedding; some snapshots store it a second time.
    tied = [_HEAD]
    if not snapshot.config.get("tie_word_embeddings", True):
        _require_equal(snapshot, f"{prefix}decoder.embed_tokens.weight")
    return CheckpointContents(
        architecture="whisper", config=WhisperConfig(dims, tokens), tokenizer=tokenizer,
        **gather(huggingface(dims, prefix), snapshot.names, snapshot.tensor, tied),
    )  # fmt: skip


def _require_equal(snapshot: Snapshot, embedding: str) -> None:
    """Refuse an output head of its own: ours is the embedding, and the logits would be others."""
    import torch

    if not {_HEAD, embedding} <= set(snapshot.names):
        return
    head, rows = snapshot.tensor(_HEAD), snapshot.tensor(embedding)
    if not torch.equal(head.float(), rows.float()):
        raise CheckpointError(
            f"{snapshot.folder / 'config.json'}: tie_word_embeddings false with {_HEAD} that differs from "
            f"{embedding}: an output head of its own is not supported"
        )


def _dims(snapshot: Snapshot) -> WhisperDims:
    config, path = snapshot.config, snapshot.folder / "config.json"
    if config.get("activation_function", "gelu") != "gelu" or config.get("scale_embedding", False):
        raise CheckpointError(
            f"{path}: expected activation_function gelu and scale_embedding false, found "
            f"{config.get('activation_function')!r} and {config.get('scale_embedding')!r}"
        )
    return WhisperDims(
        n_mels=integer(config, "num_mel_bins", path),
        vocab_size=integer(config, "vocab_size", path),
        width=integer(config, "d_model", path),
        encoder_layers=integer(config, "encoder_layers", path),
        encoder_heads=integer(config, "encoder_attention_heads", path),
        encoder_ffn=integer(config, "encoder_ffn_dim", path),
        encoder_positions=integer(config, "max_source_positions", path),
        decoder_layers=integer(config, "decoder_layers", path),
        decoder_heads=integer(config, "decoder_attention_heads", path),
        decoder_ffn=integer(config, "decoder_ffn_dim", path),
        decoder_positions=integer(config, "max_target_positions", path),
    )
