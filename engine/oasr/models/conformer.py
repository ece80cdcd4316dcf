"""U2 and U2++ (WeNet): a Conformer or Transformer encoder, a CTC head, attention decoders to rescore with."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from oasr.features.kaldi_fbank import KaldiFbank
from oasr.models.conformer_config import ConformerConfig
from oasr.models.decoders.bitransformer import BiTransformerDecoder
from oasr.models.encoders.conformer import ConformerEncoder
from oasr.models.interfaces import AsrModel, EncoderOutput
from oasr.models.layers.linear import Linear
from oasr.models.layers.subsampling import subsampling_rate
from oasr.tokenizers.base import Tokenizer

LONGEST_WINDOW_S = 40.0
"""Longer recordings are cut at pauses: the lists these models were trained on end about here, and
attention grows with the square of the window."""


class ConformerModel(AsrModel):
    """Encoder, CTC head and decoders of one checkpoint."""

    architecture: ClassVar[str] = "conformer"
    default_decode_type = "ctc"
    max_window_s = LONGEST_WINDOW_S

    def __init__(self, config: ConformerConfig, tokenizer: Tokenizer) -> None:
        """Modules without weights; a checkpoint format fills them."""
        super().__init__()
        self.config = config
        self.encoder = ConformerEncoder(config.encoder)
        self.head = Linear(config.encoder.width, config.vocab_size)
        self.decoder = None if config.decoder is None else BiTransformerDecoder(config.decoder)
        self.tokenizer = tokenizer
        self.frontend = KaldiFbank(config.fbank, config.cmvn)
        self.frame_shift_ms = config.fbank.frame_shift_ms
        self.subsampling_rate = subsampling_rate(config.encoder.subsampling)
        self.vocab_size = config.vocab_size
        self.blank_id = config.blank_id
        self.reverse_weight = config.reverse_weight

    @property
    def capabilities(self) -> tuple[str, ...]:
        """CTC always, rescoring where the checkpoint has a decoder."""
        return ("ctc",) if self.decoder is None else ("ctc", "ctc_aed_rescoring")

    def encode_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, n_mels) features, (B,) valid frames → (B, T', width) hidden states."""
        hidden, hidden_lengths = self.encoder(features, lengths)
        return EncoderOutput(lengths=hidden_lengths, hidden=hidden)

    def frame_log_probs(self, encoder_out: EncoderOutput) -> Tensor:
        """(B, T', V) float32 log-probabilities of the CTC head."""
        if encoder_out.hidden is None:
            raise ValueError("the CTC head needs hidden states, and this encoder output has none")
        return self.head(encoder_out.hidden).float().log_softmax(-1)

    def forward_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, n_mels) features, (B,) valid frames → (B, T', V) float32 log-probabilities."""
        encoded = self.encode_offline(features, lengths)
        return EncoderOutput(lengths=encoded.lengths, log_probs=self.frame_log_probs(encoded))
