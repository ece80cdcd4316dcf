"""CTC networks of transformers behind one adapter: wav2vec 2.0, HuBERT, WavLM, w2v-BERT, Parakeet.

Encoder and output layer are transformers' own modules; features, batching, decoding and text are ours.
A row gets what the network computes for it alone, which is what its authors evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from oasr.errors import CheckpointError
from oasr.models.interfaces import AsrModel, EncoderOutput, Frontend
from oasr.models.layers.mask import valid_frames
from oasr.tokenizers.base import Tokenizer

LONGEST_WINDOW_S = 40.0
"""Longer recordings are cut at pauses: the lists these models were trained on end before that, and attention
grows with the square of the window."""

CLASSES = {
    "hubert": ("HubertConfig", "HubertForCTC"),
    "parakeet_ctc": ("ParakeetCTCConfig", "ParakeetForCTC"),
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2ForCTC"),
    "wav2vec2-bert": ("Wav2Vec2BertConfig", "Wav2Vec2BertForCTC"),
    "wav2vec2-conformer": ("Wav2Vec2ConformerConfig", "Wav2Vec2ConformerForCTC"),
    "wavlm": ("WavLMConfig", "WavLMForCTC"),
}
"""`model_type` of config.json → the classes of transformers that make its configuration and network."""

_COMPUTED = ("embed_positions", "encode_positions")
"""Modules of position tables, which have no parameters and are not stored."""


@dataclass(frozen=True, slots=True)
class HfCtcConfig:
    """Everything of a snapshot but its weights and its tokenizer.

    Attributes:
        model_type: a key of CLASSES.
        values: config.json.
        frame_shift_ms: from one frame of the front end to the next, before `stack` of them become one.
    """

    model_type: str
    values: Mapping[str, Any]
    blank_id: int
    frontend: Frontend
    frame_shift_ms: float
    stack: int = 1


class HfCtcModel(AsrModel):
    """A network with a CTC output layer, and what a row needs around it."""

    architecture: ClassVar[str] = "hf_ctc"
    default_decode_type = "ctc"
    max_window_s = LONGEST_WINDOW_S

    def __init__(self, config: HfCtcConfig, tokenizer: Tokenizer) -> None:
        """Modules without weights; a checkpoint format fills them."""
        super().__init__()
        self.config = config
        self.network = build_network(config)
        self.tokenizer = tokenizer
        self.frontend = config.frontend
        self.frame_shift_ms = config.frame_shift_ms
        self.lfr_n = config.stack
        self.subsampling_rate = _subsampling(self.network.config)
        self.vocab_size = int(self.network.config.vocab_size)
        self.blank_id = config.blank_id
        self.masks_padding = _masks_padding(config.model_type, self.network.config)

    def forward_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, F) features, (B,) valid frames → (B, T', V) float32 log-probabilities.

        On a CPU, and where the network cannot be told what is padding, each row runs by itself: that costs
        a CPU nothing, and no frame is computed to be thrown away.
        """
        counts = self.frames_out(lengths)
        # A clip that is too short for one frame is one that the convolutions refuse.
        heard = torch.nonzero(counts > 0)[:, 0]
        at_once = max(len(heard), 1) if self.masks_padding and features.device.type != "cpu" else 1
        out = features.new_zeros((len(counts), max(counts.tolist(), default=0), self.vocab_size))
        for first in range(0, len(heard), at_once):
            rows = heard[first : first + at_once]
            longest = int(lengths[rows].max())
            found = self.log_probs(features[rows.to(features.device), :longest], lengths[rows])
            out[rows.to(out.device), : found.shape[1]] = found
        return EncoderOutput(lengths=counts, log_probs=out)

    def log_probs(self, features: Tensor, lengths: Tensor) -> Tensor:
        """As `forward_offline`, all rows as one padded batch; each must be long enough for a frame."""
        parameter = next(self.network.parameters())
        # (B, N, 1) → (B, N): networks that read the waveform know no feature axis.
        x = features.squeeze(-1) if self.network.main_input_name == "input_values" else features
        mask = valid_frames(lengths, features.shape[1], features.device)
        mask = None if mask is None else mask.long()
        return self.network(x.to(parameter.dtype), attention_mask=mask).logits.float().log_softmax(-1)

    def frames_out(self, lengths: Tensor) -> Tensor:
        """(B,) valid frames of the front end → (B,) int64 frames of the log-probabilities."""
        count = getattr(self.network, "_get_feat_extract_output_lengths", None)
        count = count or self.network._get_subsampling_output_length
        return count(lengths).to(torch.int64).clamp_min(0).masked_fill(lengths <= 0, 0)


def build_network(config: HfCtcConfig) -> Any:
    """The network on the device of the context, its position tables on the CPU.

    Raises:
        CheckpointError: config.json is not one that transformers can build from.
    """
    import transformers

    config_class, network_class = CLASSES[config.model_type]
    # Masking of features is for training; its vector would be a parameter that many snapshots lack.
    values = {**config.values, "mask_time_prob": 0.0, "mask_feature_prob": 0.0}
    # A snapshot may ask for an attention package that is not installed here.
    for key in ("_attn_implementation", "attn_implementation"):
        values.pop(key, None)
    try:
        network = getattr(transformers, network_class)(getattr(transformers, config_class).from_dict(values))
    except Exception as error:  # the library raises errors of many types
        raise CheckpointError(f"config.json: no {network_class} can be built from it ({error})") from error
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if name in _COMPUTED:
                # Models are built on the meta device, and no checkpoint stores these tables.
                with torch.device("cpu"):
                    setattr(parent, name, type(child)(parent.config))
        if isinstance(parent, nn.modules.batchnorm._BatchNorm):
            parent.num_batches_tracked = None  # counts training steps
    return network


def _subsampling(config: Any) -> int:
    """Frames of the front end for each frame of the output."""
    if hasattr(config, "encoder_config"):
        return int(config.encoder_config.subsampling_factor)
    strides = list(getattr(config, "conv_stride", ()))
    if getattr(config, "add_adapter", False):
        strides += [config.adapter_stride] * config.num_adapter_layers
    return math.prod(strides)


def _masks_padding(model_type: str, config: Any) -> bool:
    """Whether a padded row, with its mask, gives what it gives alone.

    It does not where something without a mask looks over the end of a row: a norm over all frames
    (wav2vec2-base), a batch norm before a convolution (HuBERT's `conv_pos_batch_norm`), the convolutions of
    Wav2Vec2Conformer's layers, and those of an adapter.
    """
    if model_type == "parakeet_ctc":
        return True
    if model_type == "wav2vec2-conformer" or getattr(config, "add_adapter", False):
        return False
    if model_type == "wav2vec2-bert":
        return True
    return config.feat_extract_norm == "layer" and not getattr(config, "conv_pos_batch_norm", False)
