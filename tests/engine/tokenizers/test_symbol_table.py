"""Tables of symbols: reading, rendering piece by piece, splitting text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oasr.errors import CheckpointError
from oasr.tokenizers.base import IncrementalText
from oasr.tokenizers.symbol_table import SymbolTableTokenizer

PIECES = ["<blank>", "<unk>", "<sos/eos>", "▁HE", "LL", "O", "▁", "WOR", "LD", "你", "好", "'S", "<0xE5>"]
SYMBOLS = dict(enumerate([*PIECES, "<0xA5>", "<0xBD>"]))


def table(**options) -> SymbolTableTokenizer:
    return SymbolTableTokenizer(SYMBOLS, **options)


def test_marks_are_spaces_and_control_symbols_are_nothing() -> None:
    tokenizer = table()
    assert tokenizer.decode([0, 3, 4, 5, 2, 6, 7, 8, 1]) == " HELLO WORLD"
    assert tokenizer.token_pieces([3, 4, 0, 11]) == [" HE", "LL", "", "'S"]
    assert tokenizer.vocab_size == 15
    assert tokenizer.special_ids == {"<blank>": 0, "<unk>": 1, "<sos/eos>": 2}


def test_byte_symbols_make_characters_together() -> None:
    tokenizer = table()
    assert tokenizer.decode([9, 12, 13, 14]) == "你好"
    assert tokenizer.token_pieces([12, 13, 14, 9]) == ["", "", "好", "你"]
    assert tokenizer.decode([9, 12]) == "你\ufffd"


def test_a_separator_stands_between_symbols_only() -> None:
    tokenizer = SymbolTableTokenizer({0: "<eps>", 1: "AH0", 2: "B"}, separator=" ")
    assert tokenizer.decode([0, 1, 0, 2, 1]) == "AH0 B AH0"
    assert tokenizer.token_pieces([0, 1, 0, 2, 1]) == ["", "AH0", "", " B", " AH0"]


@pytest.mark.parametrize("separator", ["", " "])
@given(ids=st.lists(st.integers(-3, 20), max_size=30))
def test_pieces_and_increments_join_to_the_whole(separator: str, ids: list[int]) -> None:
    tokenizer = table(separator=separator)
    whole = tokenizer.decode(ids)
    assert "".join(tokenizer.token_pieces(ids)) == whole
    text, state = "", IncrementalText()
    for token in ids:
        piece, state = tokenizer.decode_incremental((token,), state)
        text += piece
    assert text + tokenizer.flush(state) == whole


def test_encoding_takes_the_longest_symbols() -> None:
    tokenizer = table()
    assert tokenizer.encode("HELLO WORLD") == [3, 4, 5, 6, 7, 8]
    assert tokenizer.encode("你好X") == [6, 9, 10, 1]
    characters = SymbolTableTokenizer({0: "<blank>", 1: "a", 2: "b", 3: "▁"})
    assert characters.encode("ab zb") == [1, 2, 3, 2]
    assert SymbolTableTokenizer({0: "<blank>", 1: "a", 2: "b"}).encode("ab a") == [1, 2, 1]


def test_files_are_read_with_their_gaps(tmp_path: Path) -> None:
    path = tmp_path / "units.txt"
    path.write_text("<blank> 0\n好 3\r\n\n▁A 5\n 6\n", encoding="utf-8")
    tokenizer = SymbolTableTokenizer.from_file(path)
    assert tokenizer.decode([3, 4, 5, 6, 99, -1]) == "好 A "
    assert tokenizer.vocab_size == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 0\nb x\n", r":2: expected `symbol number`"),
        (b"a 0\nb c 1\n", r":2: expected `symbol number`"),
        (b"a 0\nb 0\n", r":2: label 0 stands for 'a' already"),
        (b"", "holds no symbol"),
        (b"\xff\xfe 0\n", "UTF-8"),
    ],
)
def test_malformed_files_are_refused_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "units.txt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        SymbolTableTokenizer.from_file(path)
