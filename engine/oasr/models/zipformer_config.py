"""Sizes and switches of one Zipformer (Yao et al. 2023), as icefall's second version of it has them."""

from __future__ import annotations

from dataclasses import dataclass, field

from oasr.errors import CheckpointError
from oasr.features.kaldi_fbank import FbankConfig

ICEFALL_FBANK = FbankConfig(high_hz=-400.0, scale=1.0, snip_edges=False)
"""icefall's features, by lhotse or kaldifeat: samples within [-1, 1], 20 Hz to 7.6 kHz, a frame a shift."""


@dataclass(frozen=True, slots=True)
class StackConfig:
    """One stack of layers that share width, heads and frame rate.

    Attributes:
        factor: how much slower than the first stack it runs; 1 = as fast.
        key: width of a head's queries and keys.
        position: width of a head's view of positions.
        value: width of a head's values.
        ffn: inner widths of a layer's three feed-forward modules.
        kernel: of the depthwise convolutions, odd.
    """

    width: int
    layers: int
    factor: int
    heads: int
    key: int
    position: int
    value: int
    ffn: tuple[int, int, int]
    kernel: int

    def __post_init__(self) -> None:
        """Raise CheckpointError for a kernel that has no middle."""
        if self.kernel % 2 == 0:
            raise CheckpointError(f"convolution kernel: expected an odd number, found {self.kernel}")

    @property
    def gate(self) -> int:
        """Width inside the gated attention: three quarters of the layer's."""
        return 3 * self.width // 4


@dataclass(frozen=True, slots=True)
class ZipformerConfig:
    """Everything of a checkpoint but its weights and its tokenizer.

    Attributes:
        stacks: in the order of the forward.
        vocab_size: labels of the CTC layer.
        position_width: columns of the position table.
        channels: of the three convolutions before the first stack.
        inner_channels: inside the block that follows them.
        causal: convolutions are split into one that looks back and one inside a chunk, as streaming needs.
    """

    stacks: tuple[StackConfig, ...]
    vocab_size: int
    position_width: int
    channels: tuple[int, int, int] = (8, 32, 128)
    inner_channels: int = 384
    causal: bool = False
    blank_id: int = 0
    fbank: FbankConfig = field(default_factory=lambda: ICEFALL_FBANK)

    @property
    def width(self) -> int:
        """Width of the output: that of the widest stack."""
        return max(stack.width for stack in self.stacks)
