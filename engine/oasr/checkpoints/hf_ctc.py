"""CTC networks in the Hugging Face layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oasr.checkpoints.contents import CheckpointContents, Recipe, gather
from oasr.checkpoints.hf import Snapshot
from oasr.checkpoints.hf_ctc_config import plain_config
from oasr.checkpoints.hf_ctc_tokens import read_tokenizer
from oasr.checkpoints.hf_frontend import read_frontend
from oasr.errors import CheckpointError
from oasr.models.hf_ctc import CLASSES, HfCtcConfig, build_network

_EXTRACTORS = {"wav2vec2-bert": "SeamlessM4TFeatureExtractor", "parakeet_ctc": "ParakeetFeatureExtractor"}
_IDLE = ("masked_spec_embed", "num_batches_tracked", "embed_positions.pe", "positions.inv_freq")
"""Ends of stored names that are no loss: what only training uses, and tables that are computed."""


def convert(snapshot: Snapshot) -> CheckpointContents:
    """Contents of a snapshot whose model_type is a key of CLASSES."""
    model_type, path = str(snapshot.config["model_type"]), snapshot.folder / "config.json"
    wanted = CLASSES[model_type][1]
    named = snapshot.config.get("architectures") or [wanted]
    if wanted not in named:
        raise CheckpointError(
            f"{path}: architectures: expected {wanted}, found {', '.join(map(str, named))}, which has no CTC "
            "output layer and so gives no text; use a checkpoint that was fine-tuned for recognition"
        )
    config = _config(snapshot, model_type)
    recipe = _recipe(_names(config), set(snapshot.names))
    idle = [name for name in snapshot.names if name.endswith(_IDLE)]
    return CheckpointContents(
        architecture="hf_ctc",
        config=config,
        # Of these models' tokenizers in transformers only Parakeet's is one of the tokenizers library.
        tokenizer=read_tokenizer(snapshot.folder, config.blank_id, model_type == "parakeet_ctc"),
        **gather(recipe, snapshot.names, snapshot.tensor, idle),
    )


def _config(snapshot: Snapshot, model_type: str) -> HfCtcConfig:
    features = read_frontend(snapshot.folder, _EXTRACTORS.get(model_type, "Wav2Vec2FeatureExtractor"))
    return HfCtcConfig(
        model_type=model_type,
        values=plain_config(snapshot.config, snapshot.folder / "config.json"),
        blank_id=_blank(snapshot, 1024 if model_type == "parakeet_ctc" else 0),
        frontend=features.frontend,
        frame_shift_ms=features.frame_shift_ms,
        stack=features.stack,
    )


def _blank(snapshot: Snapshot, default: int) -> int:
    """`pad_token_id`, which the loss of these networks takes for the blank; `default` is the library's."""
    path = snapshot.folder / "config.json"
    value = snapshot.config.get("pad_token_id", default)
    size = snapshot.config.get("vocab_size")
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CheckpointError(f"{path}: pad_token_id: expected the label of the blank, found {value!r}")
    if isinstance(size, int) and value >= size:
        raise CheckpointError(f"{path}: pad_token_id {value} must be below vocab_size {size}")
    return value


def _names(config: HfCtcConfig) -> list[str]:
    """What transformers calls the tensors that such a network stores."""
    import torch

    # Its names are wanted, not its numbers.
    with torch.device("meta"):
        network: Any = build_network(config)
    return list(network.state_dict())


def _recipe(names: Iterable[str], stored: set[str]) -> Recipe:
    """The network's names are the stored ones, but for the parts of a normed weight in older files."""
    recipe: dict[str, tuple[str | None, ...]] = {}
    for name in names:
        older = name.replace("parametrizations.weight.original0", "weight_g")
        older = older.replace("parametrizations.weight.original1", "weight_v")
        recipe[f"network.{name}"] = (older if older in stored and name not in stored else name,)
    return recipe
