"""The symbols of an icefall checkpoint: tokens.txt, bpe.model, or both, of the folder whose size fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oasr.errors import CheckpointError
from oasr.tokenizers.sentencepiece import SentencePieceModel
from oasr.tokenizers.symbol_table import SymbolTableTokenizer, read_symbols

if TYPE_CHECKING:
    from oasr.tokenizers.base import Tokenizer

_TABLE, _PIECES, _BYTES = "tokens.txt", "bpe.model", "bbpe.model"


def symbol_folders(root: Path) -> list[Path]:
    """Folders under `root` that hold symbols: itself, exp/, data/ and data/lang_*/."""
    places = [root, root / "exp", root / "data", *sorted((root / "data").glob("lang_*"))]
    return [place for place in places if any((place / n).is_file() for n in (_TABLE, _PIECES, _BYTES))]


def read_tokenizer(root: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer of the one folder under `root` that has a symbol for each of `vocab_size` labels.

    Raises:
        CheckpointError: none fits, several do and differ, or symbols are bytes in icefall's own code.
    """
    found: dict[str, tuple[dict[int, str], SentencePieceModel | None]] = {}
    for folder in symbol_folders(root):
        symbols, pieces = _symbols(folder)
        if sorted(symbols) == list(range(vocab_size)):
            found[str(folder)] = symbols, pieces
    tables = [symbols for symbols, _ in found.values()]
    if not tables:
        raise CheckpointError(
            f"{root}: no {_TABLE} or {_PIECES} with symbols for {vocab_size} labels in "
            f"{', '.join(map(str, symbol_folders(root))) or 'it'}"
        )
    if any(table != tables[0] for table in tables):
        raise CheckpointError(f"{root}: symbols of {', '.join(found)} fit and differ; keep one of them")
    symbols, pieces = next(iter(found.values()))
    return SymbolTableTokenizer(symbols, pieces=pieces)


def _symbols(folder: Path) -> tuple[dict[int, str], SentencePieceModel | None]:
    """Label → symbol, and what splits text into symbols."""
    if (folder / _BYTES).is_file():
        raise CheckpointError(
            f"{folder / _BYTES}: symbols that stand for bytes in icefall's own code are not implemented"
        )
    pieces = SentencePieceModel(folder / _PIECES) if (folder / _PIECES).is_file() else None
    if (folder / _TABLE).is_file():
        symbols = read_symbols(folder / _TABLE)
        # Symbols of a lexicon's grammar (#0, #1, …) follow those of the network.
        return {i: s for i, s in symbols.items() if not (s.startswith("#") and s[1:].isdecimal())}, pieces
    if pieces is None:
        raise CheckpointError(f"{folder}: holds neither {_TABLE} nor {_PIECES}")
    return dict(enumerate(pieces.pieces)), pieces
