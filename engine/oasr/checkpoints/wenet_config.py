"""WeNet's train.yaml → the configuration of our modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasr.checkpoints.sections import MOST_LAYERS, Section
from oasr.errors import CheckpointError
from oasr.features.kaldi_fbank import WINDOWS, FbankConfig
from oasr.models.conformer_config import KINDS, ConvConfig, DecoderConfig, EncoderConfig

_TRAINING_ONLY = (
    "dropout_rate",
    "positional_dropout_rate",
    "attention_dropout_rate",
    "self_attention_dropout_rate",
    "src_attention_dropout_rate",
    "gradient_checkpointing",
    "use_sdpa",
    "n_expert",
    "n_expert_activated",
)
DECODERS = ("transformer", "bitransformer")


@dataclass(frozen=True, slots=True)
class WenetConfig:
    """What train.yaml says about the network.

    Attributes:
        without_bias: (prefix, module) pairs whose linear maps were built without a bias.
        decoder: None = the checkpoint decodes with CTC alone.
        wants_cmvn: True when features are to be normalised by corpus statistics.
    """

    encoder: EncoderConfig
    decoder: DecoderConfig | None
    fbank: FbankConfig
    blank_id: int
    reverse_weight: float
    wants_cmvn: bool
    without_bias: tuple[tuple[str, str], ...]


def read_config(train: Mapping[str, Any], vocab_size: int, where: str) -> WenetConfig:
    """Read the whole file.

    Args:
        train: its contents.
        vocab_size: rows of the CTC head, which the file need not state.
        where: the file's name, for messages.

    Raises:
        CheckpointError: a network that is not implemented here, or a malformed value.
    """
    # Never finished: most keys of this level are about the training.
    top = Section(train, where)
    top.expect(model="asr_model", ctc="ctc")
    kind = top.text("encoder", "conformer")
    if kind not in KINDS:
        raise CheckpointError(f"{where}: encoder {kind!r}: only {' and '.join(KINDS)} are implemented")
    fbank = _fbank(top.section("dataset_conf"))
    # Filled by the sections below: what was built without a bias.
    absent: list[tuple[str, str]] = []
    encoder = _encoder(top.section("encoder_conf"), kind, fbank.n_mels, absent)
    model = top.section("model_conf")
    model.expect(apply_non_blank_embedding=False)
    special = _special_ids(top.section("tokenizer_conf"), vocab_size)
    decoder = _decoder(top, encoder.width, (vocab_size, *special), absent)
    reverse_weight = model.number("reverse_weight", 0.0)
    return WenetConfig(
        encoder,
        decoder,
        fbank,
        blank_id=top.section("ctc_conf").integer("ctc_blank_id", 0, least=0),
        reverse_weight=reverse_weight if decoder is not None and decoder.right_layers else 0.0,
        wants_cmvn=top.raw("cmvn") == "global_cmvn" or top.raw("cmvn_file") is not None,
        without_bias=tuple(absent),
    )


def _encoder(conf: Section, kind: str, n_mels: int, absent: list[tuple[str, str]]) -> EncoderConfig:
    conformer = kind == "conformer"
    chunk = conf.integer("static_chunk_size", 0, least=0)
    width, heads = conf.integer("output_size", 256), conf.integer("attention_heads", 4)
    config = EncoderConfig(
        kind=kind,
        n_mels=n_mels,
        width=width,
        heads=heads,
        ffn=conf.integer("linear_units", 2048),
        layers=conf.integer("num_blocks", 6, most=MOST_LAYERS),
        subsampling=conf.text("input_layer", "conv2d"),
        positions=conf.text("pos_enc_layer_type", "rel_pos" if conformer else "abs_pos"),
        attention=conf.text("selfattention_layer_type", "rel_selfattn" if conformer else "selfattn"),
        rel_shift=conf.flag("do_rel_shift", False),
        pre_norm=conf.flag("normalize_before", True),
        final_norm=conf.flag("final_norm", True),
        activation=conf.text("activation_type", "swish" if conformer else "relu"),
        norm_eps=conf.number("norm_eps", 1e-5),
        macaron=conformer and conf.flag("macaron_style", True),
        conv=_conv(conf, absent) if conformer else None,
        # A model trained with chunks of every size sees everything offline, one trained with one size
        # never sees beyond its chunk.
        static_chunk=0 if conf.flag("use_dynamic_chunk", False) else chunk,
    )
    conf.ignore(*_TRAINING_ONLY, "use_dynamic_left_chunk", "positionwise_conv_kernel_size")
    _common(conf, width // heads)
    absent += _without_bias(conf, "encoder.encoders.", "self_attn", "")
    if not conf.flag("mlp_bias", True):
        absent += [("encoder.encoders.", f"{part}.w_{i}") for part in _FFN for i in (1, 2)]
    conf.finish()
    return config


_FFN = ("feed_forward", "feed_forward_macaron")


def _conv(conf: Section, absent: list[tuple[str, str]]) -> ConvConfig | None:
    conf.expect(conv_inner_factor=2)
    norm = conf.text("cnn_module_norm", "batch_norm")
    if norm not in ("batch_norm", "layer_norm"):
        raise CheckpointError(f"cnn_module_norm: expected batch_norm or layer_norm, found {norm!r}")
    kernel, causal = conf.integer("cnn_module_kernel", 15), conf.flag("causal", False)
    eps = conf.number("conv_norm_eps", 1e-5)
    if not conf.flag("conv_bias", True):
        parts = ("pointwise_conv1", "depthwise_conv", "pointwise_conv2")
        absent += [("encoder.encoders.", f"conv_module.{part}") for part in parts]
    # Asked last: the keys above have to count as read either way.
    used = conf.flag("use_cnn_module", True)
    return ConvConfig(kernel, causal, norm == "layer_norm", eps) if used else None


def _decoder(
    top: Section, width: int, ids: tuple[int, int, int], absent: list[tuple[str, str]]
) -> DecoderConfig | None:
    # `decoder: null` means none. WeNet's default is a bitransformer, taken where decoder_conf is there.
    if "decoder" not in top and (top.states("decoder") or "decoder_conf" not in top):
        return None
    kind = top.text("decoder", "bitransformer")
    if kind not in DECODERS:
        raise CheckpointError(f"train.yaml: decoder {kind!r}: only {' and '.join(DECODERS)} are implemented")
    conf = top.section("decoder_conf")
    heads, bidirectional = conf.integer("attention_heads", 4), kind == "bitransformer"
    config = DecoderConfig(
        vocab_size=ids[0],
        width=width,
        heads=heads,
        ffn=conf.integer("linear_units", 2048),
        layers=conf.integer("num_blocks", 6, most=MOST_LAYERS),
        right_layers=conf.integer("r_num_blocks", 0, least=0, most=MOST_LAYERS) if bidirectional else 0,
        pre_norm=conf.flag("normalize_before", True),
        activation=conf.text("activation_type", "relu"),
        norm_eps=conf.number("norm_eps", 1e-5),
        sos_id=ids[1],
        eos_id=ids[2],
    )
    conf.ignore(*_TRAINING_ONLY, "tie_word_embedding")
    conf.expect(input_layer="embed", use_output_layer=True, src_attention=True)
    _common(conf, width // heads)
    absent += _without_bias(conf, "decoder.", "self_attn", "")
    if kind == "transformer":
        absent += _without_bias(conf, "decoder.", "src_attn", "src_")
    if not conf.flag("mlp_bias", True):
        absent += [("decoder.", f"feed_forward.w_{i}") for i in (1, 2)]
    conf.finish()
    return config


def _common(conf: Section, head_size: int) -> None:
    """Switches that both stacks have and of which one value is implemented."""
    conf.expect(
        layer_norm_type="layer_norm",
        mlp_type="position_wise_feed_forward",
        concat_after=False,
        n_kv_head=None,
    )
    conf.expect(head_dim=None if "head_dim" not in conf else head_size)


def _without_bias(conf: Section, prefix: str, module: str, kind: str) -> list[tuple[str, str]]:
    """Linear maps of one attention that have no bias; the output follows the query, as in WeNet."""
    maps = {"query": ("linear_q", "linear_out"), "key": ("linear_k",), "value": ("linear_v",)}
    return [
        (prefix, f"{module}.{name}")
        for part, names in maps.items()
        if not conf.flag(f"{kind}{part}_bias", True)
        for name in names
    ]


def _fbank(conf: Section) -> FbankConfig:
    conf.expect(feats_type="fbank")
    rate = conf.section("resample_conf").integer("resample_rate", 16000)
    bank = conf.section("fbank_conf")
    bank.ignore("dither")
    window = bank.text("window_type", "povey")
    if window not in WINDOWS:
        raise CheckpointError(
            f"fbank_conf: window_type: expected one of {', '.join(WINDOWS)}, got {window!r}"
        )
    config = FbankConfig(
        sample_rate=rate,
        # 23 is what WeNet's extractor does when nobody says otherwise.
        n_mels=bank.integer("num_mel_bins", 23),
        frame_length_ms=bank.number("frame_length", 25.0),
        frame_shift_ms=bank.number("frame_shift", 10.0),
        window=window,
    )
    bank.finish()
    return config


def _special_ids(conf: Section, vocab_size: int) -> tuple[int, int]:
    """Start and end of a sentence: named, or the last label."""
    special = conf.section("special_tokens")
    last = vocab_size - 1
    ids = special.integer("<sos>", last, least=0), special.integer("<eos>", last, least=0)
    if max(ids) > last:
        raise CheckpointError(f"special_tokens: <sos> and <eos> must be below {vocab_size}, found {ids}")
    return ids
