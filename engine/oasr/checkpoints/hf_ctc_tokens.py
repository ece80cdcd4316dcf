"""The vocabulary of a Hugging Face CTC snapshot: vocab.json of characters, or a tokenizer.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.files import read_json
from oasr.checkpoints.sections import Section
from oasr.errors import CheckpointError
from oasr.tokenizers.base import MOST_LABELS, IncrementalText
from oasr.tokenizers.symbol_table import WORD_MARK, SymbolTableTokenizer

if TYPE_CHECKING:
    from oasr.tokenizers.base import Tokenizer

_PHONES = "Wav2Vec2PhonemeCTCTokenizer"
_SIGMA = "\u03a3"
_CONTROL = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
"""Role → the name under which our table hides such a symbol, and that of the library's default."""


def read_tokenizer(folder: Path, blank_id: int, prefers_json: bool = False) -> Tokenizer:
    """The tokenizer of the snapshot in `folder`.

    Args:
        folder: the snapshot.
        blank_id: the label that the network was trained to leave empty.
        prefers_json: whether a tokenizer.json goes before a vocab.json of characters.

    Raises:
        CheckpointError: no vocabulary, a malformed one, one whose padding symbol, which is what the
            original decoder takes for the blank, has another label, or a tokenizer.json that would
            merge labels which the search has merged already.
    """
    from oasr.tokenizers.huggingface import HuggingFaceTokenizer

    of_characters = (folder / "vocab.json").is_file() and not (
        # With merges.txt beside it, vocab.json is byte-level BPE.
        (folder / "merges.txt").is_file() or (prefers_json and (folder / "tokenizer.json").is_file())
    )
    if of_characters:
        return _characters(_Settings(folder), blank_id)
    found = HuggingFaceTokenizer.from_folder(folder)
    if found is None:
        raise CheckpointError(
            f"{folder}: no vocabulary found (looked for vocab.json and tokenizer.json); copy that of the "
            "original model beside the weights"
        )
    if "CTC" in found.decoder_types:
        raise CheckpointError(
            f"{folder / 'tokenizer.json'}: its decoder is of type CTC, which merges equal neighbours once "
            "more after the search (HELLO becomes HELO); put the original model's vocab.json beside it, or "
            "a tokenizer.json with another decoder in its place"
        )
    return found


def _characters(settings: _Settings, blank_id: int) -> Tokenizer:
    """A table of characters, the delimiter of words as a space, control symbols as nothing."""
    symbols = settings.symbols()
    pad = settings.token("pad_token", "<pad>")
    if pad in symbols.values() and symbols.get(blank_id) != pad:
        own = next(label for label, symbol in symbols.items() if symbol == pad)
        raise CheckpointError(
            f"{settings.folder}: pad_token_id of config.json, the blank of the training, is {blank_id}, but "
            f"the vocabulary has {pad!r} at {own}; one of the two belongs to another model"
        )
    control = {settings.token(role, shown): shown for role, shown in _CONTROL.items()}
    phones = settings.section.text("tokenizer_class", "") == _PHONES
    delimiter = settings.token("word_delimiter_token", "" if phones else "|")
    space = "" if phones else settings.section.text("replace_word_delimiter_char", " ")
    lower = settings.section.flag("do_lower_case", False)

    def shown(label: int, symbol: str) -> str:
        if symbol in control:
            return control[symbol]
        if symbol == delimiter:
            # Our table writes a space as its word mark.
            return space.replace(" ", WORD_MARK)
        return "" if label in settings.hidden else lowered(symbol) if lower else symbol

    def lowered(symbol: str) -> str:
        return _SIGMA.join(part.lower() for part in symbol.split(_SIGMA))

    table = {i: shown(i, s) for i, s in symbols.items()}
    kind = _LoweredSigma if lower and any(_SIGMA in s for s in table.values()) else SymbolTableTokenizer
    return kind(table, " " if phones else "")


class _LoweredSigma(SymbolTableTokenizer):
    """A table in lower case but for Σ, which is lowered in the text: at the end of a word it is ς, else σ."""

    def encode(self, text: str) -> list[int]:
        """Labels of `text`, whichever sigma it has."""
        return super().encode(text.replace("\u03c3", _SIGMA).replace("\u03c2", _SIGMA))

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`."""
        return super().decode(ids).lower()

    def decode_incremental(
        self, new_ids: Sequence[int], state: IncrementalText | None = None
    ) -> tuple[str, IncrementalText]:
        """The words that `new_ids` complete: until then a sigma may still change."""
        state = state or IncrementalText()
        ids = (*state.ids, *new_ids)
        text = self.decode(ids)
        done = text[: text.rfind(" ") + 1]
        return done[len(state.text) :], IncrementalText(ids, done)

    def flush(self, state: IncrementalText) -> str:
        """What is still held back when no more ids come."""
        return self.decode(state.ids)[len(state.text) :]

    def token_pieces(self, ids: Sequence[int]) -> list[str]:
        """One string an id; joined they equal `decode(ids)`."""
        pieces = super().token_pieces(ids)
        text = "".join(pieces).lower()
        # A sigma takes one place in either form.
        sizes = (len(piece.lower()) for piece in pieces)
        return [text[a:b] for a, b in pairwise(accumulate(sizes, initial=0))]


class _Settings:
    """What the tokenizer's files say, the newer ones first.

    Attributes:
        folder: the snapshot.
        section: tokenizer_config.json.
        hidden: labels of added symbols that are marked as special.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._config = read_json(folder / "tokenizer_config.json", required=False)
        self._map = read_json(folder / "special_tokens_map.json", required=False)
        self.section = Section(self._config, str(folder / "tokenizer_config.json"))
        self.hidden: set[int] = set()

    def token(self, role: str, default: str) -> str:
        """The symbol of `role`; files write it as a string or as an object with `content`."""
        for source in (self._config, self._map):
            value = source.get(role)
            value = value.get("content") if isinstance(value, Mapping) else value
            if isinstance(value, str):
                return value
        return default

    def symbols(self) -> dict[int, str]:
        """Label → symbol, added ones included where the vocabulary has none at that label."""
        path = self.folder / "vocab.json"
        symbols = _by_label(self._of_language(read_json(path), path), path)
        path = self.folder / "added_tokens.json"
        for label, symbol in _by_label(read_json(path, required=False), path).items():
            symbols.setdefault(label, symbol)
        added = self._config.get("added_tokens_decoder")
        for key, entry in (added if isinstance(added, Mapping) else {}).items():
            labelled = key.isdecimal() and len(key) <= 9 and int(key) < MOST_LABELS
            if not (isinstance(entry, Mapping) and isinstance(entry.get("content"), str) and labelled):
                raise CheckpointError(
                    f"{self.folder / 'tokenizer_config.json'}: added_tokens_decoder: expected label → object "
                    f"with content, found {key!r}: {entry!r}"
                )
            # A special symbol hides the label only where it is the one that stands there.
            if symbols.setdefault(int(key), entry["content"]) == entry["content"] and entry.get("special"):
                self.hidden.add(int(key))
        return symbols

    def _of_language(self, vocab: dict[str, Any], path: Path) -> dict[str, Any]:
        """The vocabulary itself, or that of the chosen language where there is one for each (MMS)."""
        if not vocab or not all(isinstance(value, dict) for value in vocab.values()):
            return vocab
        language = self.section.text("target_lang", "eng")
        if language not in vocab:
            raise CheckpointError(
                f"{path}: target_lang is {language!r}, and there are {', '.join(sorted(vocab)[:20])}"
            )
        chosen: dict[str, Any] = vocab[language]
        return chosen


def _by_label(vocab: Mapping[str, Any], path: Path) -> dict[int, str]:
    symbols: dict[int, str] = {}
    for symbol, label in vocab.items():
        known = isinstance(label, int) and not isinstance(label, bool) and 0 <= label < MOST_LABELS
        if not known or label in symbols:
            raise CheckpointError(
                f"{path}: expected a label of its own for {symbol!r}, found {label!r} (labels are below "
                f"{MOST_LABELS})"
            )
        symbols[label] = symbol
    return symbols
