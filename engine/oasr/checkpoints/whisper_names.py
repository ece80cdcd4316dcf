"""How each format names Whisper's tensors: recipes from our parameter names to stored ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oasr.checkpoints.contents import Recipe
from oasr.models.whisper_config import WhisperDims

Parts = tuple["str | None", ...]


def _both(ours: str, *stored: str) -> dict[str, Parts]:
    """Weight and bias of one module, fused from `stored` modules."""
    return {f"{ours}.{kind}": tuple(f"{s}.{kind}" for s in stored) for kind in ("weight", "bias")}


def _fused(ours: str, stored: Iterable[str], without_bias: str) -> dict[str, Parts]:
    """Fused projections of which one (the keys) has no bias."""
    names = tuple(stored)
    return {
        f"{ours}.weight": tuple(f"{s}.weight" for s in names),
        # None reads as zeros: a bias of the keys would move all scores of a query alike, so Whisper has none.
        f"{ours}.bias": tuple(None if s == without_bias else f"{s}.bias" for s in names),
    }


def _repeat(rules: Mapping[str, Parts], ours: str, stored: str, layers: int) -> dict[str, Parts]:
    """`rules` once a layer, with `{}` in both prefixes standing for the layer number."""
    return {
        ours.format(i) + key: tuple(None if p is None else stored.format(i) + p for p in parts)
        for i in range(layers)
        for key, parts in rules.items()
    }


def _model(
    encoder: Mapping[str, Parts], decoder: Mapping[str, Parts], stored: str, dims: WhisperDims
) -> dict[str, Parts]:
    """All layers of both stacks; `stored` is the prefix with `{side}` and `{{}}` (layer) in it."""
    return _repeat(
        encoder, "encoder.layers.{}.", stored.format(side="encoder"), dims.encoder_layers
    ) | _repeat(decoder, "decoder.layers.{}.", stored.format(side="decoder"), dims.decoder_layers)


def huggingface(dims: WhisperDims, prefix: str) -> Recipe:
    """Names of transformers' WhisperForConditionalGeneration (`prefix` "model.") or WhisperModel ("")."""
    qkv = _fused("qkv", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "self_attn.k_proj")
    kv = _fused("kv", ("encoder_attn.k_proj", "encoder_attn.v_proj"), "encoder_attn.k_proj")
    ffn = _both("ffn_norm", "final_layer_norm") | _both("ffn.up", "fc1") | _both("ffn.down", "fc2")
    encoder = (
        _both("attn_norm", "self_attn_layer_norm")
        | {f"attn.{k}": v for k, v in qkv.items()}
        | _both("attn.out", "self_attn.out_proj")
        | ffn
    )
    decoder = (
        _both("self_norm", "self_attn_layer_norm")
        | {f"self_attn.{k}": v for k, v in qkv.items()}
        | _both("self_attn.out", "self_attn.out_proj")
        | _both("cross_norm", "encoder_attn_layer_norm")
        | _both("cross_attn.q", "encoder_attn.q_proj")
        | {f"cross_attn.{k}": v for k, v in kv.items()}
        | _both("cross_attn.out", "encoder_attn.out_proj")
        | ffn
    )
    return (
        _both("encoder.conv1", f"{prefix}encoder.conv1")
        | _both("encoder.conv2", f"{prefix}encoder.conv2")
        | {"encoder.positions": (f"{prefix}encoder.embed_positions.weight",)}
        | _both("encoder.norm", f"{prefix}encoder.layer_norm")
        | {"decoder.tokens.weight": (f"{prefix}decoder.embed_tokens.weight",)}
        | {"decoder.positions": (f"{prefix}decoder.embed_positions.weight",)}
        | _both("decoder.norm", f"{prefix}decoder.layer_norm")
        | _model(encoder, decoder, prefix + "{side}.layers.{{}}.", dims)
    )


def openai(dims: WhisperDims) -> Recipe:
    """Names of the released `.pt` files."""
    qkv = _fused("qkv", ("attn.query", "attn.key", "attn.value"), "attn.key")
    kv = _fused("cross_attn.kv", ("cross_attn.key", "cross_attn.value"), "cross_attn.key")
    ffn = _both("ffn_norm", "mlp_ln") | _both("ffn.up", "mlp.0") | _both("ffn.down", "mlp.2")
    encoder = (
        _both("attn_norm", "attn_ln")
        | {f"attn.{k}": v for k, v in qkv.items()}
        | _both("attn.out", "attn.out")
        | ffn
    )
    decoder = (
        _both("self_norm", "attn_ln")
        | {f"self_attn.{k}": v for k, v in qkv.items()}
        | _both("self_attn.out", "attn.out")
        | _both("cross_norm", "cross_attn_ln")
        | _both("cross_attn.q", "cross_attn.query")
        | kv
        | _both("cross_attn.out", "cross_attn.out")
        | ffn
    )
    return (
        _both("encoder.conv1", "encoder.conv1")
        | _both("encoder.conv2", "encoder.conv2")
        | {"encoder.positions": ("encoder.positional_embedding",)}
        | _both("encoder.norm", "encoder.ln_post")
        | {"decoder.tokens.weight": ("decoder.token_embedding.weight",)}
        | {"decoder.positions": ("decoder.positional_embedding",)}
        | _both("decoder.norm", "decoder.ln")
        | _model(encoder, decoder, "{side}.blocks.{{}}.", dims)
    )


def ctranslate2(dims: WhisperDims) -> Recipe:
    """Variables of CTranslate2's WhisperSpec, which stores the projections fused as we do."""
    self_attention = {"qkv": "self_attention/linear_0", "out": "self_attention/linear_1"}
    cross = {"q": "attention/linear_0", "kv": "attention/linear_1", "out": "attention/linear_2"}
    ffn = (
        _norm("ffn_norm", "ffn/layer_norm")
        | _slashed("ffn.up", "ffn/linear_0")
        | _slashed("ffn.down", "ffn/linear_1")
    )
    encoder = _norm("attn_norm", "self_attention/layer_norm") | ffn
    decoder = (
        _norm("self_norm", "self_attention/layer_norm") | _norm("cross_norm", "attention/layer_norm") | ffn
    )
    for ours, stored in self_attention.items():
        encoder |= _slashed(f"attn.{ours}", stored)
        decoder |= _slashed(f"self_attn.{ours}", stored)
    for ours, stored in cross.items():
        decoder |= _slashed(f"cross_attn.{ours}", stored)
    return (
        _slashed("encoder.conv1", "encoder/conv1")
        | _slashed("encoder.conv2", "encoder/conv2")
        | {"encoder.positions": ("encoder/position_encodings/encodings",)}
        | _norm("encoder.norm", "encoder/layer_norm")
        | {"decoder.tokens.weight": ("decoder/embeddings/weight",)}
        | {"decoder.positions": ("decoder/position_encodings/encodings",)}
        | _norm("decoder.norm", "decoder/layer_norm")
        | _model(encoder, decoder, "{side}/layer_{{}}/", dims)
    )


def _slashed(ours: str, stored: str) -> dict[str, Parts]:
    return {f"{ours}.{kind}": (f"{stored}/{kind}",) for kind in ("weight", "bias")}


def _norm(ours: str, stored: str) -> dict[str, Parts]:
    return {f"{ours}.weight": (f"{stored}/gamma",), f"{ours}.bias": (f"{stored}/beta",)}
