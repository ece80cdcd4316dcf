"""Zipformer with a CTC layer (icefall)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from oasr.features.kaldi_fbank import KaldiFbank
from oasr.models.encoders.zipformer.encoder import RATE, ZipformerEncoder
from oasr.models.interfaces import AsrModel, EncoderOutput
from oasr.models.layers.linear import Linear
from oasr.models.zipformer_config import ZipformerConfig
from oasr.tokenizers.base import Tokenizer

LONGEST_WINDOW_S = 30.0
"""Longer recordings are cut at pauses: icefall's recipes train on utterances of up to 20 to 30 s, and the
attention weights of the first stack take four bytes a head for each pair of 20 ms frames."""


class ZipformerModel(AsrModel):
    """Encoder and CTC layer of one checkpoint."""

    architecture: ClassVar[str] = "zipformer"
    default_decode_type = "ctc"
    max_window_s = LONGEST_WINDOW_S
    subsampling_rate = RATE

    def __init__(self, config: ZipformerConfig, tokenizer: Tokenizer) -> None:
        """Modules without weights; a checkpoint format fills them."""
        super().__init__()
        self.config = config
        self.encoder = ZipformerEncoder(config)
        self.head = Linear(config.width, config.vocab_size)
        self.tokenizer = tokenizer
        self.frontend = KaldiFbank(config.fbank)
        self.frame_shift_ms = config.fbank.frame_shift_ms
        self.vocab_size = config.vocab_size
        self.blank_id = config.blank_id

    def encode_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, n_mels) features, (B,) valid frames → (B, T', width) hidden states.

        On a CPU each row runs by itself: padding would be computed for nothing, and the attention weights of
        a whole batch of long rows would fill the memory.
        """
        if features.device.type != "cpu" or len(features) <= 1:
            hidden, counts = self.encoder(features, lengths)
            return EncoderOutput(lengths=counts, hidden=hidden)
        rows = [
            self.encoder(row[None, :n], lengths[i : i + 1])
            for i, (row, n) in enumerate(zip(features, lengths.tolist(), strict=True))
        ]
        hidden = pad_sequence([hidden[0] for hidden, _ in rows], batch_first=True)
        return EncoderOutput(lengths=torch.cat([count for _, count in rows]), hidden=hidden)

    def frame_log_probs(self, encoder_out: EncoderOutput) -> Tensor:
        """(B, T', V) float32 log-probabilities of the CTC layer."""
        if encoder_out.hidden is None:
            raise ValueError("the CTC layer needs hidden states, and this encoder output has none")
        return self.head(encoder_out.hidden).float().log_softmax(-1)

    def forward_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, n_mels) features, (B,) valid frames → (B, T', V) float32 log-probabilities."""
        encoded = self.encode_offline(features, lengths)
        return EncoderOutput(lengths=encoded.lengths, log_probs=self.frame_log_probs(encoded))
