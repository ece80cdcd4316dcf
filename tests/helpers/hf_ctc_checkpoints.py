"""Tiny CTC snapshots with made-up weights, written by transformers itself, one for each kind of network."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

LETTERS = ("<pad>", "<s>", "</s>", "<unk>", "|", *"EATIOHSN")
"""Of a vocab.json as wav2vec2-base-960h has it."""

_CONVOLUTIONS = {
    "conv_dim": (8, 8, 8), "conv_kernel": (10, 4, 4), "conv_stride": (5, 4, 4),
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
_ENCODER = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "vocab_size": len(LETTERS), "pad_token_id": 0,
}  # fmt: skip
_STABLE = {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True}
_ADAPTER = {"add_adapter": True, "num_adapter_layers": 1}
_CONFORMER = {**_CONVOLUTIONS, **_STABLE, "conv_depthwise_kernel_size": 5}
_BERT = {
    "conv_depthwise_kernel_size": 5,
    "feature_projection_input_dim": 160,
    "position_embeddings_type": "relative_key",
}

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "wav2vec2-group": ("Wav2Vec2", _CONVOLUTIONS),
    "wav2vec2-layer": ("Wav2Vec2", {**_CONVOLUTIONS, **_STABLE, "adapter_attn_dim": 4}),
    "wav2vec2-adapter": ("Wav2Vec2", {**_CONVOLUTIONS, **_STABLE, **_ADAPTER}),
    "hubert": ("Hubert", {**_CONVOLUTIONS, **_STABLE}),
    "hubert-norm": ("Hubert", {**_CONVOLUTIONS, **_STABLE, "conv_pos_batch_norm": True}),
    "wavlm": ("WavLM", {**_CONVOLUTIONS, **_STABLE, "num_buckets": 12, "max_bucket_distance": 20}),
    "conformer-relative": ("Wav2Vec2Conformer", _CONFORMER),
    "conformer-rotary": ("Wav2Vec2Conformer", {**_CONFORMER, "position_embeddings_type": "rotary"}),
    "bert": ("Wav2Vec2Bert", _BERT),
    "bert-relative": (
        "Wav2Vec2Bert",
        {**_BERT, "position_embeddings_type": "relative", "max_source_positions": 50},
    ),
    "bert-adapter": ("Wav2Vec2Bert", {**_BERT, "add_adapter": True, "num_adapter_layers": 2}),
    "parakeet": ("Parakeet", {}),
}
"""Name → prefix of the classes in transformers, and their settings."""

_PARAKEET = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "subsampling_conv_channels": 4, "conv_kernel_size": 5, "num_mel_bins": 80,
}  # fmt: skip
PIECES = (*(f"▁{w}" for w in ("the", "a", "old")), *"abcdefgh", "▁")
"""Of Parakeet's tokenizer; the label after them and <unk> is the blank."""


def network(name: str) -> Any:
    """The made-up network called `name`, as transformers builds it."""
    import transformers

    prefix, settings = SETTINGS[name]
    if prefix == "Parakeet":
        size = len(PIECES) + 2
        config = transformers.ParakeetCTCConfig(
            vocab_size=size, pad_token_id=size - 1, encoder_config=dict(_PARAKEET)
        )
    else:
        config = getattr(transformers, f"{prefix}Config")(**{**_ENCODER, **settings})
    torch.manual_seed(zlib.crc32(name.encode()))
    made = getattr(transformers, f"{prefix}ForCTC")(config).eval()
    control = [size - 2] if prefix == "Parakeet" else [1, 2, 3]
    with torch.no_grad():
        for key, value in made.state_dict().items():
            _fill(key, value, control)
    return made


def _fill(key: str, value: torch.Tensor, control: list[int]) -> None:
    """Weights that let every part show in the output, whose labels are all met but for the control ones."""
    if key.endswith("running_var"):
        value.uniform_(0.5, 2.0)
    elif value.ndim == 1 and value.is_floating_point():
        value.add_(0.1 * torch.randn_like(value))
    elif value.ndim > 1:
        gain = 3.0 if "head" in key or "subsampling" in key else 1.0
        value.normal_(0, gain / math.sqrt(value[0].numel()))
    if key.endswith(("lm_head.bias", "ctc_head.bias")):
        value[control] = -20.0


def write_snapshot(folder: Path, name: str) -> Any:
    """Write the snapshot called `name`; returns transformers' own processor of it."""
    import transformers

    prefix, _ = SETTINGS[name]
    folder.mkdir(parents=True, exist_ok=True)
    network(name).save_pretrained(folder)
    if prefix == "Parakeet":
        return _parakeet_processor(folder)
    (folder / "vocab.json").write_text(json.dumps({s: i for i, s in enumerate(LETTERS)}), "utf-8")
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(folder / "vocab.json"))
    if prefix == "Wav2Vec2Bert":
        extractor: Any = transformers.SeamlessM4TFeatureExtractor(padding_value=1.0)
        processor: Any = transformers.Wav2Vec2BertProcessor(extractor, tokenizer)
    else:
        masked = name != "wav2vec2-group"
        extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=masked)
        processor = transformers.Wav2Vec2Processor(extractor, tokenizer)
    processor.save_pretrained(folder)
    return processor


def _parakeet_processor(folder: Path) -> Any:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocab = [(piece, -float(i)) for i, piece in enumerate((*PIECES, "<unk>"))]
    backend = Tokenizer(models.Unigram(vocab, unk_id=len(PIECES)))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    tokenizer = transformers.ParakeetTokenizer(
        tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", clean_up_tokenization_spaces=False
    )
    processor = transformers.ParakeetProcessor(parakeet_extractor(), tokenizer)
    processor.save_pretrained(folder)
    return processor


def parakeet_extractor(**settings: Any) -> Any:
    """transformers' extractor; some of its versions need librosa for it."""
    import transformers

    try:
        return transformers.ParakeetFeatureExtractor(**settings)
    except ImportError as error:
        pytest.skip(f"this transformers cannot make a ParakeetFeatureExtractor here: {error}")


def clip(seed: int, n_samples: int) -> np.ndarray:
    """(n_samples,) float32 noise that swells, has a tone in it and is not centred."""
    random = np.random.RandomState(seed)
    time = np.arange(n_samples) / 16000
    noise = random.standard_normal(n_samples) * 0.2 * np.sin(time * (3 + seed)) ** 2
    return (noise + 0.3 * np.sin(2 * np.pi * 300 * (1 + seed) * time) + 0.05).astype(np.float32)
