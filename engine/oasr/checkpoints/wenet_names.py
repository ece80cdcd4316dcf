"""How WeNet names the tensors of U2 and U2++: recipes from our parameter names to stored ones."""

from __future__ import annotations

from collections.abc import Mapping

from oasr.checkpoints.contents import Recipe
from oasr.models.conformer_config import DecoderConfig, EncoderConfig

Parts = tuple["str | None", ...]


def model_recipe(encoder: EncoderConfig, decoder: DecoderConfig | None, left: str) -> Recipe:
    """Every parameter of a ConformerModel.

    Args:
        encoder: its sizes.
        decoder: those of the decoder; None = there is none.
        left: stored prefix of the left-to-right decoder.
    """
    recipe = encoder_recipe(encoder) | both("head", "ctc.ctc_lo")
    if decoder is not None:
        recipe |= _decoder("decoder.left.", left, decoder.layers, decoder)
        recipe |= _decoder("decoder.right.", "decoder.right_decoder.", decoder.right_layers, decoder)
    return recipe


def encoder_recipe(config: EncoderConfig) -> dict[str, Parts]:
    """Every parameter under `encoder.`."""
    recipe = under("encoder.subsampling.", "encoder.embed.", _subsampling(config.subsampling))
    if config.pre_norm and config.final_norm:
        recipe |= both("encoder.norm", "encoder.after_norm")
    rules = _conformer_layer(config) if config.kind == "conformer" else _transformer_layer()
    for layer in range(config.layers):
        recipe |= under(f"encoder.layers.{layer}.", f"encoder.encoders.{layer}.", rules)
    return recipe


def both(ours: str, *stored: str) -> dict[str, Parts]:
    """Weight and bias of one module, joined from those of `stored` modules."""
    return {f"{ours}.{kind}": tuple(f"{s}.{kind}" for s in stored) for kind in ("weight", "bias")}


def under(ours: str, stored: str, rules: Mapping[str, Parts]) -> dict[str, Parts]:
    """`rules` with a prefix on either side."""
    return {
        ours + key: tuple(None if p is None else stored + p for p in parts) for key, parts in rules.items()
    }


def _subsampling(kind: str) -> dict[str, Parts]:
    if kind == "linear":
        return both("out", "out.0") | both("norm", "out.1")
    convs = {"conv2d2": 1, "conv2d8": 3}.get(kind, 2)
    recipe = both("out", "linear" if kind in ("conv2d6", "conv2d8") else "out.0")
    for number in range(convs):
        # A ReLU stands between two convolutions.
        recipe |= both(f"convs.{number}", f"conv.{2 * number}")
    return recipe


def _attention(stored: str) -> dict[str, Parts]:
    qkv = both("attn.qkv", f"{stored}.linear_q", f"{stored}.linear_k", f"{stored}.linear_v")
    return qkv | both("attn.out", f"{stored}.linear_out")


def _feed_forward(ours: str, stored: str) -> dict[str, Parts]:
    return both(f"{ours}.up", f"{stored}.w_1") | both(f"{ours}.down", f"{stored}.w_2")


def _transformer_layer() -> dict[str, Parts]:
    return (
        both("attn_norm", "norm1")
        | _attention("self_attn")
        | both("ffn_norm", "norm2")
        | _feed_forward("ffn", "feed_forward")
    )


def _conformer_layer(config: EncoderConfig) -> dict[str, Parts]:
    recipe = (
        both("attn_norm", "norm_mha")
        | _attention("self_attn")
        | both("ffn_norm", "norm_ff")
        | _feed_forward("ffn", "feed_forward")
    )
    if config.attention == "rel_selfattn":
        recipe |= {
            "attn.position.weight": ("self_attn.linear_pos.weight",),
            "attn.content_bias": ("self_attn.pos_bias_u",),
            "attn.position_bias": ("self_attn.pos_bias_v",),
        }
    if config.attention == "shaw_rel_selfattn":
        recipe |= {"attn.distance": ("self_attn.rel_k_embed.weight",)}
    if config.macaron:
        recipe |= both("macaron_norm", "norm_ff_macaron") | _feed_forward("macaron", "feed_forward_macaron")
    if config.conv is not None:
        recipe |= (
            both("conv_norm", "norm_conv")
            | both("out_norm", "norm_final")
            | both("conv.expand", "conv_module.pointwise_conv1")
            | both("conv.depthwise", "conv_module.depthwise_conv")
            | both("conv.project", "conv_module.pointwise_conv2")
        )
        if config.conv.layer_norm:
            recipe |= both("conv.norm", "conv_module.norm")
    return recipe


def _decoder(ours: str, stored: str, layers: int, config: DecoderConfig) -> dict[str, Parts]:
    if not layers:
        return {}
    layer_rules = (
        both("attn_norm", "norm1")
        | _attention("self_attn")
        | both("cross_norm", "norm2")
        | both("cross.q", "src_attn.linear_q")
        | both("cross.kv", "src_attn.linear_k", "src_attn.linear_v")
        | both("cross.out", "src_attn.linear_out")
        | both("ffn_norm", "norm3")
        | _feed_forward("ffn", "feed_forward")
    )
    rules: dict[str, Parts] = {"embedding": ("embed.0.weight",), **both("output", "output_layer")}
    if config.pre_norm:
        rules |= both("norm", "after_norm")
    for layer in range(layers):
        rules |= under(f"layers.{layer}.", f"decoders.{layer}.", layer_rules)
    return under(ours, stored, rules)
