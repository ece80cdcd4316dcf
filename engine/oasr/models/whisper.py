"""Whisper (Radford et al. 2022) in all sizes, distilled ones included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from oasr.features.whisper_logmel import WhisperLogMel
from oasr.kernels import fixed16
from oasr.models.decoders.whisper import WhisperDecoder
from oasr.models.encoders.whisper import WhisperEncoder
from oasr.models.encoders.whisper_fixed16 import Fixed16WhisperEncoder
from oasr.models.interfaces import AsrModel, EncoderOutput
from oasr.models.layers.fixed16 import pack_decoder
from oasr.models.whisper_config import WhisperConfig
from oasr.models.whisper_prompt import WhisperPrompt
from oasr.tokenizers.base import Tokenizer
from oasr.types import DecodingOptions


class WhisperModel(AsrModel):
    """Encoder, decoder and prompt rules of one Whisper checkpoint."""

    architecture: ClassVar[str] = "whisper"
    default_decode_type: ClassVar[str] = "aed"
    frame_shift_ms = 10.0
    subsampling_rate = 2
    max_window_s = 30.0

    def __init__(self, config: WhisperConfig, tokenizer: Tokenizer) -> None:
        """Modules without weights; a checkpoint format fills them."""
        super().__init__()
        dims, tokens = config.dims, config.tokens
        self.config = config
        self.encoder: WhisperEncoder | Fixed16WhisperEncoder = WhisperEncoder(dims)
        self.decoder = WhisperDecoder(dims)
        self.tokenizer = tokenizer
        self.max_positions = dims.decoder_positions
        # Two feature frames an encoder position: the second convolution has stride 2.
        self.max_window_s = dims.encoder_positions * 2 * self.frame_shift_ms / 1000
        self.frontend: WhisperLogMel = WhisperLogMel(dims.n_mels, self.max_window_s)
        # Of the positions a previous text gets half, less one, as in the released decoder.
        self.prompt = WhisperPrompt(tokens, tokenizer, self.max_positions // 2 - 1)
        self.eos_id = tokens.eos_id
        self.sot_id = tokens.sot_id
        self.sot_prev_id = tokens.sot_prev_id
        self.no_speech_id = tokens.no_speech_id
        self.no_timestamps_id = tokens.no_timestamps_id
        self.suppress_ids = tokens.suppress_ids
        self.begin_suppress_ids = tokens.begin_suppress_ids
        self.is_multilingual = tokens.is_multilingual
        self.language_ids: Mapping[str, int] = tokens.language_ids
        self.task_ids: Mapping[str, int] = tokens.task_ids
        self.settled_language = tokens.settled_language
        self.alignment_heads = config.alignment_heads

    def encode_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, n_mels) features, T even → (B, T/2, width) hidden states.

        `lengths` (B,) are the frames of each row's window (not of its speech): a whole window is
        attended to, silence included, as in training.
        """
        hidden, hidden_lengths = self.encoder(features, lengths)
        return EncoderOutput(lengths=hidden_lengths, hidden=hidden)

    @property
    def offers_fixed16(self) -> bool:
        """The kernels serve heads of 64, which all published sizes have."""
        dims = self.config.dims
        sizes = {dims.width // dims.encoder_heads, dims.width // dims.decoder_heads}
        return sizes == {fixed16.HEAD_SIZE} and fixed16.supports(self.decoder.positions.device)

    def use_fixed16(self) -> None:
        """Run encoder and decoder on 16-bit fixed-point kernels from now on."""
        if not self.offers_fixed16:
            # Raises, naming the architecture.
            super().use_fixed16()
        if isinstance(self.encoder, WhisperEncoder):
            self.encoder = Fixed16WhisperEncoder(self.encoder)
        pack_decoder(self.decoder)
        # The head has a packed copy; what is looked up loses nothing in the type that most checkpoints store.
        embeddings = self.decoder.tokens.weight
        halves = embeddings.half()
        if torch.equal(halves.float(), embeddings):
            self.decoder.tokens.weight = nn.Parameter(halves, requires_grad=False)

    def stated_language(self, options: DecodingOptions) -> str | None:
        """The code of the language asked for, else of the one that the checkpoint is settled on, if any."""
        if options.language is not None:
            return self.validate_language(options.language)
        return self.settled_language if self.is_multilingual else "en"

    def decoder_row_bytes(self, window_samples: int, max_new_tokens: int) -> int:
        """Keys and values of the longest prompt and transcript, and of the encoder window."""
        frame_s = self.frame_shift_ms * self.subsampling_rate / 1000
        tokens = min(self.max_positions, self.prompt.longest + max_new_tokens)
        return self.decoder.row_bytes(tokens, round(window_samples / self.frontend.sample_rate / frame_s))

    def validate_language(self, language: str) -> str:
        """The checkpoint's code for a code or English language name; RequestError when it has none."""
        return self.prompt.validate_language(language)

    def validate_task(self, task: str) -> str:
        """`task` itself; RequestError when the checkpoint cannot do it."""
        return self.prompt.validate_task(task)

    def prompt_tokens(self, options: DecodingOptions, language: str | None = None) -> tuple[int, ...]:
        """What the decoder is given before the first token of the transcript.

        Args:
            options: `task`, `language` and `prompt` are read.
            language: a detected language, used when the options name none.

        Returns:
            `<|startofprev|>` and the tail of the previous text when there is one, then the SOT
            sequence, whose length does not depend on task or language.
        """
        chosen = options.language if options.language is not None else language
        return self.prompt.previous_text(options.prompt) + self.prompt.sot_sequence(options.task, chosen)
