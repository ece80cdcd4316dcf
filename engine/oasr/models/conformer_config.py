"""Sizes and switches of one U2 or U2++ checkpoint (Zhang et al. 2021, 2022), as its files state them."""

from __future__ import annotations

from dataclasses import dataclass, field

from oasr.errors import CheckpointError
from oasr.features.cmvn import GlobalCmvn
from oasr.features.kaldi_fbank import FbankConfig

KINDS = ("conformer", "transformer")
SUBSAMPLINGS = ("linear", "conv2d2", "conv2d", "conv2d6", "conv2d8")
POSITIONS = ("abs_pos", "rel_pos", "no_pos")
ATTENTIONS = ("selfattn", "rel_selfattn", "shaw_rel_selfattn")


@dataclass(frozen=True, slots=True)
class ConvConfig:
    """The convolution module of a Conformer layer.

    Attributes:
        causal: a frame sees only frames before it, as streaming needs.
        layer_norm: normalise each frame; False = batch statistics, folded into the convolution.
    """

    kernel: int
    causal: bool = False
    layer_norm: bool = True
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        """Raise CheckpointError for a kernel that has no middle."""
        if self.kernel < 1 or (not self.causal and self.kernel % 2 == 0):
            raise CheckpointError(
                f"cnn_module_kernel: expected an odd number unless causal, got {self.kernel}"
            )


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The encoder.

    Attributes:
        kind: "conformer", or "transformer" (no convolutions, no macaron).
        attention: "selfattn" knows no positions but those added to its input, "rel_selfattn"
            weighs the position of each key, "shaw_rel_selfattn" the clipped distance to it.
        rel_shift: shift the position scores of "rel_selfattn" as WeNet did before 2021.
        pre_norm: normalise before each block; False = after its residual sum.
        final_norm: normalise the last layer's output too (only with `pre_norm`).
        conv: None = no convolution module.
        static_chunk: frames of the blocks that attention may not look beyond; 0 = none.
    """

    kind: str
    n_mels: int
    width: int
    heads: int
    ffn: int
    layers: int
    subsampling: str = "conv2d"
    positions: str = "rel_pos"
    attention: str = "rel_selfattn"
    rel_shift: bool = False
    pre_norm: bool = True
    final_norm: bool = True
    activation: str = "swish"
    norm_eps: float = 1e-5
    macaron: bool = True
    conv: ConvConfig | None = None
    static_chunk: int = 0

    def __post_init__(self) -> None:
        """Raise CheckpointError for what no layer implements."""
        for name, known in (
            ("kind", KINDS),
            ("subsampling", SUBSAMPLINGS),
            ("positions", POSITIONS),
            ("attention", ATTENTIONS),
        ):
            if getattr(self, name) not in known:
                raise CheckpointError(
                    f"encoder {name}: expected one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        if self.width % self.heads:
            raise CheckpointError(f"encoder width {self.width} cannot be split into {self.heads} heads")


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The attention decoder; with `right_layers` a second one reads right to left."""

    vocab_size: int
    width: int
    heads: int
    ffn: int
    layers: int
    right_layers: int = 0
    pre_norm: bool = True
    activation: str = "relu"
    norm_eps: float = 1e-5
    sos_id: int = 0
    eos_id: int = 0

    def __post_init__(self) -> None:
        """Raise CheckpointError for sizes that cannot be."""
        if self.width % self.heads:
            raise CheckpointError(f"decoder width {self.width} cannot be split into {self.heads} heads")


@dataclass(frozen=True, slots=True)
class ConformerConfig:
    """Everything of a checkpoint but its weights and its tokenizer.

    Attributes:
        reverse_weight: the share of the right-to-left decoder in rescoring.
        cmvn: feature statistics; None = features are used as they are.
    """

    encoder: EncoderConfig
    vocab_size: int
    decoder: DecoderConfig | None = None
    blank_id: int = 0
    reverse_weight: float = 0.0
    fbank: FbankConfig = field(default_factory=FbankConfig)
    cmvn: GlobalCmvn | None = None
