"""Bytes and their alphabet; whole, piecewise and incremental rendering agree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from oasr.tokenizers.base import IncrementalText
from oasr.tokenizers.byte_level import ByteTable, byte_of_char, token_bytes

TABLE = ByteTable([bytes([b]) for b in range(256)])
PAIRS = ByteTable(
    [bytes([b]) for b in range(256)] + [b"", "é".encode(), b"\xc3", b"\xff\xfe", "日本".encode()]
)


def test_alphabet_is_a_bijection_on_bytes() -> None:
    table = byte_of_char()
    assert sorted(table.values()) == list(range(256)) and len(table) == 256
    assert table["Ġ"] == 0x20 and table["Ċ"] == 0x0A and table["A"] == 0x41


def test_entries_outside_the_alphabet_are_text() -> None:
    assert token_bytes("Ġhello") == b" hello"
    assert token_bytes("日") == "日".encode()


@given(st.text(max_size=40))
def test_text_round_trip(text: str) -> None:
    ids = list(text.encode())
    assert TABLE.text(ids) == text and "".join(TABLE.pieces(ids)) == text


@given(st.lists(st.integers(-2, 270), max_size=30))
def test_any_ids_render_alike_in_every_way(ids: list[int]) -> None:
    whole = PAIRS.text(ids)
    pieces = PAIRS.pieces(ids)
    assert len(pieces) == len(ids) and "".join(pieces) == whole
    text, state = "", IncrementalText()
    for token in ids:
        piece, state = PAIRS.extend((token,), state)
        text += piece
    assert text + state.pending.decode("utf-8", "replace") == whole


def test_a_character_belongs_to_the_id_that_completes_it() -> None:
    assert TABLE.pieces(list("aé日".encode())) == ["a", "", "é", "", "", "日"]
