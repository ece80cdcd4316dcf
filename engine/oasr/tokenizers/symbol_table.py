"""A table of symbols, one a label: `units.txt` of WeNet, `tokens.txt` of icefall and Kaldi."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from oasr.errors import CheckpointError
from oasr.tokenizers.base import MOST_LABELS, IncrementalText, Tokenizer
from oasr.tokenizers.byte_level import ByteTable
from oasr.tokenizers.sentencepiece import SentencePieceModel

WORD_MARK = "\u2581"
"""`▁`, which stands for the space before a word in the symbols of sentencepiece."""

CONTROL = ("<blank>", "<blk>", "<eps>", "<pad>", "<unk>", "<sos>", "<eos>", "<sos/eos>", "<s>", "</s>")
"""Symbols that no transcript contains, in any case."""

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class SymbolTableTokenizer(Tokenizer):
    """Renders each id as its symbol, `▁` as a space, control symbols as nothing."""

    def __init__(
        self, symbols: dict[int, str], separator: str = "", pieces: SentencePieceModel | None = None
    ) -> None:
        """Build it from a table.

        Args:
            symbols: label → symbol. Labels may have gaps.
            separator: text between two symbols (a space, where symbols are phones or words).
            pieces: splits text into symbols on the way in; None = the longest symbols that fit.
        """
        self._size = max(symbols, default=-1) + 1
        hidden = {i for i, s in symbols.items() if s.lower() in CONTROL}
        self._special = {symbols[i]: i for i in sorted(hidden)}
        self._ids = {s: i for i, s in symbols.items() if i not in hidden}
        self._unknown = next((i for s, i in self._special.items() if s.lower() == "<unk>"), None)
        self._longest = max(map(len, self._ids), default=1)
        self._words_are_marked = any(s.startswith(WORD_MARK) and len(s) > 1 for s in self._ids)
        self._separator = separator
        self._pieces = pieces
        entries = [b""] * self._size
        # By label: two labels may well be written alike.
        for index, symbol in symbols.items():
            byte = _BYTE.fullmatch(symbol)
            if index not in hidden:
                entries[index] = (
                    bytes.fromhex(byte[1]) if byte is not None else symbol.replace(WORD_MARK, " ").encode()
                )
        self._table = ByteTable(entries)

    @classmethod
    def from_file(
        cls, path: Path, separator: str = "", pieces: SentencePieceModel | None = None
    ) -> SymbolTableTokenizer:
        """Read `symbol label` lines. Raises CheckpointError naming the first malformed line."""
        return cls(read_symbols(path), separator, pieces)

    @property
    def vocab_size(self) -> int:
        """One more than the largest label."""
        return self._size

    @property
    def special_ids(self) -> dict[str, int]:
        """Control symbols by content."""
        return dict(self._special)

    def encode(self, text: str) -> list[int]:
        """Labels of `text`; what no symbol covers becomes `<unk>` where the table has one."""
        if self._pieces is not None:
            found = [self._ids.get(piece, self._unknown) for piece in self._pieces.split(text)]
            return [i for i in found if i is not None]
        return self._longest_symbols(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`."""
        return "".join(self.token_pieces(ids)) if self._separator else self._table.text(ids)

    def decode_incremental(
        self, new_ids: Sequence[int], state: IncrementalText | None = None
    ) -> tuple[str, IncrementalText]:
        """The text that `new_ids` add, and the state for the next call."""
        if self._separator:
            return super().decode_incremental(new_ids, state)
        return self._table.extend(new_ids, state or IncrementalText())

    def flush(self, state: IncrementalText) -> str:
        """What is still held back when no more ids come (bytes of a character that was cut)."""
        return super().flush(state) if self._separator else state.pending.decode("utf-8", "replace")

    def token_pieces(self, ids: Sequence[int]) -> list[str]:
        """One string an id; joined they equal `decode(ids)`."""
        pieces = self._table.pieces(ids)
        if self._separator:
            seen = False
            for index, piece in enumerate(pieces):
                pieces[index] = self._separator + piece if piece and seen else piece
                seen = seen or bool(piece)
        return pieces

    def _longest_symbols(self, text: str) -> list[int]:
        # A table of pieces marks the first word too, a table of characters only what follows a space.
        marked = (" " * self._words_are_marked + text.strip()).replace(" ", WORD_MARK)
        ids: list[int] = []
        at = 0
        while at < len(marked):
            sizes = range(min(self._longest, len(marked) - at), 0, -1)
            size = next((n for n in sizes if marked[at : at + n] in self._ids), 0)
            found = self._ids.get(marked[at : at + size], self._unknown)
            if found is not None:
                ids.append(found)
            # A character that no symbol covers is stepped over by itself.
            at += max(size, 1)
        return ids


def read_symbols(path: Path) -> dict[int, str]:
    """Label → symbol of a table file: one symbol and its number a line.

    Raises:
        CheckpointError: unreadable, not UTF-8, a malformed line, or a label given twice.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read as UTF-8 text ({error})") from error
    symbols: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            continue
        # A label alone is the line of a symbol that is white space itself.
        symbol, label = (" ", parts[0]) if len(parts) == 1 else (parts[0], parts[-1])
        # A short one first: int() refuses thousands of digits with an error of its own.
        if len(parts) > 2 or not label.isdecimal() or len(label) > 9 or int(label) >= MOST_LABELS:
            raise CheckpointError(
                f"{path}:{number}: expected `symbol number`, the number below {MOST_LABELS}, found {line!r}"
            )
        if int(label) in symbols:
            raise CheckpointError(
                f"{path}:{number}: label {label} stands for {symbols[int(label)]!r} already"
            )
        symbols[int(label)] = symbol
    if not symbols:
        raise CheckpointError(f"{path}: holds no symbol")
    return symbols
