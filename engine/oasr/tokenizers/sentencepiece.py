"""Sentencepiece models (Kudo and Richardson 2018): splitting text, and rendering ids piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oasr.errors import CheckpointError
from oasr.tokenizers.base import IncrementalText, Tokenizer
from oasr.tokenizers.byte_level import ByteTable

_WORD_MARK = "\u2581"


class SentencePieceModel:
    """A `.model` file of the sentencepiece library."""

    def __init__(self, path: Path) -> None:
        """Load it. Raises CheckpointError when it is none."""
        from sentencepiece import SentencePieceProcessor

        self.path = path
        try:
            self.processor: Any = SentencePieceProcessor(model_file=str(path))
            # Pieces that are no UTF-8 show only when they are asked for.
            self.pieces = [str(self.processor.id_to_piece(i)) for i in range(self.processor.get_piece_size())]
        except (OSError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"{path}: not a readable sentencepiece model ({error})") from error

    def split(self, text: str) -> list[str]:
        """The pieces of `text`."""
        return [str(piece) for piece in self.processor.encode(text, out_type=str)]


class SentencePieceTokenizer(Tokenizer):
    """Labels are the model's own piece numbers; byte pieces make characters together."""

    def __init__(self, model: SentencePieceModel) -> None:
        """Wrap a loaded model."""
        self._processor = model.processor
        self._special: dict[str, int] = {}
        entries = [b""] * len(model.pieces)
        for index, piece in enumerate(model.pieces):
            if self._processor.is_byte(index):
                # Written as <0xE4>.
                entries[index] = bytes([int(piece[3:-1], 16)])
            elif self._is_control(index):
                self._special[piece] = index
            else:
                entries[index] = piece.replace(_WORD_MARK, " ").encode()
        self._table = ByteTable(entries)

    @classmethod
    def from_file(cls, path: Path) -> SentencePieceTokenizer:
        """Read a `.model` file. Raises CheckpointError when it is none."""
        return cls(SentencePieceModel(path))

    @property
    def vocab_size(self) -> int:
        """Pieces of the model, control pieces included."""
        return int(self._processor.get_piece_size())

    @property
    def special_ids(self) -> dict[str, int]:
        """Control pieces and `<unk>` by content."""
        return dict(self._special)

    def encode(self, text: str) -> list[int]:
        """Label ids of `text`."""
        return [int(i) for i in self._processor.encode(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, with the space before its first word."""
        return self._table.text(ids)

    def decode_incremental(
        self, new_ids: Sequence[int], state: IncrementalText | None = None
    ) -> tuple[str, IncrementalText]:
        """The text that `new_ids` complete, and the state for the next call."""
        return self._table.extend(new_ids, state or IncrementalText())

    def flush(self, state: IncrementalText) -> str:
        """What is still held back when no more ids come."""
        return state.pending.decode("utf-8", "replace")

    def token_pieces(self, ids: Sequence[int]) -> list[str]:
        """One string an id; joined they equal `decode(ids)`."""
        return self._table.pieces(ids)

    def _is_control(self, index: int) -> bool:
        processor = self._processor
        return bool(processor.is_control(index) or processor.is_unknown(index) or processor.is_unused(index))
