"""How icefall names the tensors of a Zipformer: recipes from our parameter names to stored ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from oasr.checkpoints.contents import Recipe
from oasr.checkpoints.wenet_names import Parts, both, under
from oasr.models.zipformer_config import ZipformerConfig

HEAD = "ctc_output.1"

_LEFT_OVER = re.compile(r"encoder\.encoders\.\d+\.(encoder\.)?layers\.\d+\.bypass_scale")
"""A parameter that icefall's layers create and never use."""


def model_recipe(config: ZipformerConfig) -> Recipe:
    """Every parameter of a ZipformerModel."""
    recipe = both("head", HEAD) | _subsampling() | {"encoder.halve.bias": ("encoder.downsample_output.bias",)}
    for number, stack in enumerate(config.stacks):
        ours, theirs = f"encoder.stacks.{number}.", f"encoder.encoders.{number}."
        inner = theirs
        if stack.factor > 1:
            inner = f"{theirs}encoder."
            recipe[f"{ours}downsample.bias"] = (f"{theirs}downsample.bias",)
            recipe[f"{ours}bypass.share"] = (f"{theirs}out_combiner.bypass_scale",)
        for layer in range(stack.layers):
            recipe |= under(f"{ours}layers.{layer}.", f"{inner}layers.{layer}.", _layer(config.causal))
    return recipe


def left_over(names: Iterable[str]) -> list[str]:
    """Stored names that are no loss."""
    return [name for name in names if _LEFT_OVER.fullmatch(name)]


def stack_prefix(stored: Mapping[str, Any], number: int) -> str:
    """Where the layers of a stack are: one level deeper when it runs at a lower rate."""
    prefix = f"encoder.encoders.{number}."
    return f"{prefix}encoder." if f"{prefix}downsample.bias" in stored else prefix


def _subsampling() -> dict[str, Parts]:
    # The numbers between belong to activations, and to what only shapes gradients.
    convs = [both(f"convs.{n}", f"conv.{stored}") for n, stored in enumerate((0, 4, 7))]
    rules: dict[str, Parts] = (
        convs[0] | convs[1] | convs[2] | both("block.depthwise", "convnext.depthwise_conv")
    )
    rules |= both("block.widen", "convnext.pointwise_conv1") | both(
        "block.narrow", "convnext.pointwise_conv2"
    )
    return under(
        "encoder.subsampling.", "encoder_embed.", rules | both("out", "out") | _norm("norm", "out_norm")
    )


def _norm(ours: str, stored: str) -> dict[str, Parts]:
    return {f"{ours}.{kind}": (f"{stored}.{kind}",) for kind in ("bias", "log_scale")}


def _layer(causal: bool) -> dict[str, Parts]:
    rules = (
        both("weights.project", "self_attn_weights.in_proj")
        | {"weights.position.weight": ("self_attn_weights.linear_pos.weight",)}
        | both("gated.project", "nonlin_attention.in_proj")
        | both("gated.out", "nonlin_attention.out_proj")
        | _norm("norm", "norm")
        | {"middle.share": ("bypass_mid.bypass_scale",), "bypass.share": ("bypass.bypass_scale",)}
    )
    for number in (0, 1):
        attention, conv = f"self_attn{number + 1}", f"conv_module{number + 1}"
        rules |= both(f"attns.{number}.values", f"{attention}.in_proj")
        rules |= both(f"attns.{number}.out", f"{attention}.out_proj")
        rules |= under(f"convs.{number}.", f"{conv}.", _convolution(causal))
    for number in (0, 1, 2):
        rules |= both(f"ffns.{number}.up", f"feed_forward{number + 1}.in_proj")
        rules |= both(f"ffns.{number}.down", f"feed_forward{number + 1}.out_proj")
    return rules


def _convolution(causal: bool) -> dict[str, Parts]:
    rules = both("expand", "in_proj") | both("project", "out_proj")
    if not causal:
        return rules | both("depthwise", "depthwise_conv")
    return (
        rules
        | both("depthwise.back", "depthwise_conv.causal_conv")
        | both("depthwise.around", "depthwise_conv.chunkwise_conv")
        | {"depthwise.edges": ("depthwise_conv.chunkwise_conv_scale",)}
    )
