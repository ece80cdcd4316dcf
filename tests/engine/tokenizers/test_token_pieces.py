"""`token_pieces` of every kind of tokenizer: the pieces are exactly the text, in time linear in the ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.whisper_checkpoints import write_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.tokenizers.base import Tokenizer
from oasr.tokenizers.huggingface import HuggingFaceTokenizer
from oasr.tokenizers.symbol_table import SymbolTableTokenizer
from tokenizers import AddedToken, Regex, decoders, models
from tokenizers import Tokenizer as Backend

TEXT = [
    "▁he", "llo", "▁wor", "ld", "▁it", "'s", ",", ".", "▁(", "▁你", "好", "▁é", "▁", "##ing", "un", "##do",
    "'", "n't",
]  # fmt: skip
BYTES = [f"<0x{value:02X}>" for value in range(256)]


def metaspace() -> Tokenizer:
    """As sentencepiece models converted by Hugging Face: bytes fall back, the first space is stripped."""
    pieces = [("<unk>", 0.0), ("<s>", 0.0), *((piece, -1.0) for piece in [*TEXT, *BYTES])]
    backend = Backend(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens([AddedToken("<s>", special=True)])
    return HuggingFaceTokenizer(backend)


def wordpiece() -> Tokenizer:
    """Spaces depend on the neighbour, and punctuation is cleaned up over token borders."""
    backend = Backend(
        models.WordPiece({piece: i for i, piece in enumerate(["[UNK]", *TEXT])}, unk_token="[UNK]")
    )
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    return HuggingFaceTokenizer(backend)


def regex_cleanup() -> Tokenizer:
    """A decoder that rewrites what is decoded already: no split into pieces is exact by itself."""
    backend = Backend(models.WordLevel({piece: i for i, piece in enumerate(TEXT)}, unk_token="▁"))
    backend.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace(Regex("lo▁*wor"), "LW")])
    return HuggingFaceTokenizer(backend)


def byte_level(folder: Path) -> Tokenizer:
    return HuggingFaceTokenizer.from_file(write_tokenizer(folder))


def symbols(separator: str) -> Tokenizer:
    table = ["<blank>", "<unk>", *TEXT, *BYTES, "<sos/eos>"]
    return SymbolTableTokenizer(dict(enumerate(table)), separator)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory) -> dict[str, Tokenizer]:
    return {
        "byte level": byte_level(tmp_path_factory.mktemp("pieces")), "metaspace": metaspace(),
        "wordpiece": wordpiece(), "regex": regex_cleanup(), "symbols": symbols(""), "spaced": symbols(" "),
    }  # fmt: skip


KINDS = ["byte level", "metaspace", "wordpiece", "regex", "symbols", "spaced"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pieces_join_to_the_text(tokenizers, kind: str, data) -> None:
    tokenizer = tokenizers[kind]
    ids = data.draw(st.lists(st.integers(-1, tokenizer.vocab_size + 1), max_size=60))
    pieces = tokenizer.token_pieces(ids)
    assert len(pieces) == len(ids) and "".join(pieces) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", ["byte level", "metaspace", "symbols"])
@settings(max_examples=40, deadline=None)
@given(text=st.text(st.sampled_from("a é你😀\u0301한"), max_size=40))
def test_a_character_of_several_bytes_belongs_to_the_last_of_them(tokenizers, kind: str, text: str) -> None:
    tokenizer = tokenizers[kind]
    if kind == "byte level":
        ids = tokenizer.encode(text)
    else:
        first = 2 + len(TEXT)  # of the byte symbols
        ids = [first + byte for byte in text.encode()]
    pieces = [""] * len(ids)
    at = -1
    for char in text:
        at += len(char.encode())
        pieces[at] = char
    got = tokenizer.token_pieces(ids)
    if kind == "metaspace" and text.startswith(" "):
        assert "".join(got) == text[1:]  # its decoder strips one
    else:
        assert got == pieces


@pytest.mark.parametrize("kind", KINDS)
def test_time_is_linear_in_the_ids(tokenizers, kind: str, monkeypatch) -> None:
    tokenizer = tokenizers[kind]
    seen = []
    decode = tokenizer.decode
    monkeypatch.setattr(tokenizer, "decode", lambda ids: (seen.append(len(ids)), decode(ids))[1])
    for ids in ([i % tokenizer.vocab_size for i in range(3000)], [5] * 3000):
        seen.clear()
        assert len(tokenizer.token_pieces(ids)) == 3000
        assert sum(seen) <= 100 * 3000
