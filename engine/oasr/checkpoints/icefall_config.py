"""The sizes of an icefall Zipformer, from the shapes of its tensors: its files state none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oasr.checkpoints.icefall_names import HEAD, stack_prefix
from oasr.errors import CheckpointError
from oasr.models.encoders.zipformer.subsampling import bands_out
from oasr.models.zipformer_config import ICEFALL_FBANK, StackConfig, ZipformerConfig

_POSITION = 4
"""`--pos-head-dim` of icefall's train.py, which nobody changes; heads and positions only occur multiplied."""

_CHUNKS = "conv_module1.depthwise_conv.chunkwise_conv.weight"


class Shapes:
    """Sizes of named tensors, with errors that say what was looked for."""

    def __init__(self, stored: Mapping[str, Any], where: str) -> None:
        """`stored` are named tensors, `where` names them in messages."""
        self.stored = stored
        self.where = where

    def __call__(self, name: str, rank: int) -> tuple[int, ...]:
        """Shape of the tensor called `name`, which must have `rank` axes."""
        if name not in self.stored:
            raise CheckpointError(f"{self.where}: holds no {name}; is this icefall's second Zipformer?")
        shape = tuple(int(n) for n in self.stored[name].shape)
        if len(shape) != rank or min(shape, default=1) < 1:
            raise CheckpointError(f"{self.where}: {name}: expected {rank} axes, found shape {list(shape)}")
        return shape

    def ratio(self, name: str, whole: int, part: int) -> int:
        """`whole` / `part` where it is a whole number, as it must be for the tensor called `name`."""
        if part < 1 or whole < part or whole % part:
            raise CheckpointError(
                f"{self.where}: {name}: {whole} cannot be split into parts of {part}; pos_head_dim counts as "
                f"{_POSITION} unless icefall.yaml beside the weights says otherwise"
            )
        return whole // part


def read_shapes(stored: Mapping[str, Any], where: str, stated: Mapping[str, Any]) -> ZipformerConfig:
    """The configuration that the tensors imply.

    Args:
        stored: name → tensor.
        where: their file, for messages.
        stated: what shapes leave open, where something says it: `pos_head_dim` (an integer, or one for each
            stack) and `feature_dim`.

    Raises:
        CheckpointError: tensors that are missing or do not fit each other.
    """
    shapes = Shapes(stored, where)
    places = _for_each(stated.get("pos_head_dim", _POSITION), _count(stored, r"encoder\.encoders\.(\d+)\."))
    if not places:
        raise CheckpointError(f"{where}: holds no encoder.encoders.0; is this icefall's second Zipformer?")
    stacks = tuple(_stack(shapes, number, place) for number, place in enumerate(places))
    first = f"{stack_prefix(stored, 0)}layers.0."
    # Activations, and what only shapes gradients, have the numbers between.
    channels = tuple(shapes(f"encoder_embed.conv.{n}.weight", 4)[0] for n in (0, 4, 7))
    config = ZipformerConfig(
        stacks=stacks,
        vocab_size=shapes(f"{HEAD}.weight", 2)[0],
        position_width=shapes(f"{first}self_attn_weights.linear_pos.weight", 2)[1],
        channels=(channels[0], channels[1], channels[2]),
        inner_channels=shapes("encoder_embed.convnext.pointwise_conv1.weight", 4)[0],
        causal=f"{first}conv_module1.depthwise_conv.causal_conv.weight" in stored,
        fbank=replace(ICEFALL_FBANK, n_mels=int(stated.get("feature_dim", ICEFALL_FBANK.n_mels))),
    )
    bands = shapes("encoder_embed.out.weight", 2)[1]
    if bands != channels[2] * bands_out(config.fbank.n_mels):
        raise CheckpointError(
            f"{where}: encoder_embed.out.weight takes {bands} inputs, which {config.fbank.n_mels} bins do "
            "not give; say feature_dim in icefall.yaml beside the weights"
        )
    return config


def _stack(shapes: Shapes, number: int, position: int) -> StackConfig:
    prefix = stack_prefix(shapes.stored, number)
    layer = f"{prefix}layers.0."
    width = shapes(f"{layer}norm.bias", 1)[0]
    name = f"{layer}self_attn_weights.linear_pos.weight"
    # Its rows are heads · pos_head_dim, and only the product is stored.
    heads = shapes.ratio(name, shapes(name, 2)[0], position)
    name = f"{layer}self_attn_weights.in_proj.weight"
    # A head's rows: query, key (both of one width) and its view of positions.
    per_head = shapes.ratio(name, shapes(name, 2)[0], heads)
    value = f"{layer}self_attn1.in_proj.weight"
    conv = "depthwise_conv.chunkwise_conv" if f"{layer}{_CHUNKS}" in shapes.stored else "depthwise_conv"
    slower = f"encoder.encoders.{number}.downsample.bias"
    ffn = [shapes(f"{layer}feed_forward{n}.in_proj.weight", 2)[0] for n in (1, 2, 3)]
    return StackConfig(
        width=width,
        layers=_count(shapes.stored, re.escape(prefix) + r"layers\.(\d+)\."),
        factor=shapes(slower, 1)[0] if slower in shapes.stored else 1,
        heads=heads,
        key=shapes.ratio(name, per_head - position, 2),
        position=position,
        value=shapes.ratio(value, shapes(value, 2)[0], heads),
        ffn=(ffn[0], ffn[1], ffn[2]),
        kernel=shapes(f"{layer}conv_module1.{conv}.weight", 3)[2],
    )


def _count(stored: Mapping[str, Any], pattern: str) -> int:
    """How many numbers from 0 on a group of tensor names has."""
    numbers = {int(match[1]) for name in stored if (match := re.match(pattern, name))}
    return next(n for n in range(len(numbers) + 1) if n not in numbers)


def _for_each(value: Any, count: int) -> list[int]:
    """An integer for each stack, from one of them, a list, or icefall's comma list."""
    parts = (
        value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
    )
    try:
        numbers = [int(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    numbers = numbers * count if len(numbers) == 1 else numbers
    if len(numbers) != count or min(numbers, default=1) < 1:
        raise CheckpointError(f"pos_head_dim: expected an integer > 0, or {count} of them, found {value!r}")
    return numbers
