"""Sizes and token ids of one Whisper checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oasr.errors import CheckpointError

_MOST = {"n_mels": 1024, "encoder_layers": 1000, "decoder_layers": 1000, "encoder_positions": 15_000}
"""Ten times what there is. More would be built, or make minutes of audio of every short clip."""


@dataclass(frozen=True, slots=True)
class WhisperDims:
    """Sizes of the network. `width` is shared by the encoder and the decoder."""

    n_mels: int
    vocab_size: int
    width: int
    encoder_layers: int
    encoder_heads: int
    encoder_ffn: int
    encoder_positions: int
    decoder_layers: int
    decoder_heads: int
    decoder_ffn: int
    decoder_positions: int

    def __post_init__(self) -> None:
        """Raise CheckpointError for sizes that no checkpoint can have."""
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise CheckpointError(f"Whisper {name}: expected a number > 0, got {getattr(self, name)}")
            if getattr(self, name) > _MOST.get(name, 1 << 20):
                raise CheckpointError(
                    f"Whisper {name}: expected at most {_MOST.get(name, 1 << 20)}, got {getattr(self, name)}"
                )
        for heads in (self.encoder_heads, self.decoder_heads):
            if self.width % heads:
                raise CheckpointError(f"Whisper width {self.width} cannot be split into {heads} heads")


@dataclass(frozen=True, slots=True)
class WhisperTokens:
    """Token ids that the checkpoint itself names.

    Attributes:
        sot_sequence: the prompt after any previous text; its language and task slots are found
            by value, since ids and positions move between releases.
        language_ids: language code → id.
        task_ids: "transcribe" and "translate" → id; empty when the checkpoint knows no task.
        settled_language: the code that the checkpoint is configured for, which then stands in
            `sot_sequence` too, as a configured task does; None = it has to be heard.
        suppress_ids, begin_suppress_ids: never chosen; never chosen as the first token.
        alignment_heads: (layer, head) pairs as the checkpoint lists them.
    """

    eos_id: int
    sot_id: int
    sot_sequence: tuple[int, ...]
    is_multilingual: bool
    language_ids: Mapping[str, int] = field(default_factory=dict)
    task_ids: Mapping[str, int] = field(default_factory=dict)
    settled_language: str | None = None
    suppress_ids: tuple[int, ...] = ()
    begin_suppress_ids: tuple[int, ...] = ()
    no_timestamps_id: int | None = None
    no_speech_id: int | None = None
    sot_prev_id: int | None = None
    alignment_heads: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class WhisperConfig:
    """Everything but the weights and the tokenizer."""

    dims: WhisperDims
    tokens: WhisperTokens

    @property
    def alignment_heads(self) -> tuple[tuple[int, int], ...]:
        """(layer, head) pairs whose cross-attention follows the audio: as published, else the upper half's.

        Distilled checkpoints may carry the list of their teacher, whose numbers mean nothing in them:
        one that names a head which is not there is left aside.
        """
        layers, heads = self.dims.decoder_layers, self.dims.decoder_heads
        stored = self.tokens.alignment_heads
        if stored and all(layer < layers and head < heads for layer, head in stored):
            return stored
        return tuple((layer, head) for layer in range(layers // 2, layers) for head in range(heads))
