"""Sentencepiece models against the library's own decoder."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from oasr.errors import CheckpointError
from oasr.tokenizers.base import IncrementalText
from oasr.tokenizers.sentencepiece import SentencePieceModel, SentencePieceTokenizer
from oasr.tokenizers.symbol_table import SymbolTableTokenizer

TEXTS = ["hello world", "the quick brown fox", "jumps over the lazy dog", "hello again my old friend"] * 5


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        model_type="bpe",
        vocab_size=320,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path_factory.mktemp("bpe") / "bpe.model"
    path.write_bytes(model.getvalue())
    return path


def test_round_trip_and_the_library_agree(model_path: Path) -> None:
    tokenizer = SentencePieceTokenizer.from_file(model_path)
    library = sentencepiece.SentencePieceProcessor(model_file=str(model_path))
    for text in ("hello world", "quick naïve 日本", "x"):
        ids = tokenizer.encode(text)
        assert ids == library.encode(text)
        assert tokenizer.decode(ids).strip() == library.decode(ids) == text
    assert tokenizer.decode(tokenizer.encode("hello")) == " hello"
    assert tokenizer.special_ids == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert tokenizer.vocab_size == library.get_piece_size()


@given(ids=st.lists(st.integers(-2, 330), max_size=30))
def test_pieces_and_increments_join_to_the_whole(model_path: Path, ids: list[int]) -> None:
    tokenizer = SentencePieceTokenizer.from_file(model_path)
    whole = tokenizer.decode(ids)
    assert "".join(tokenizer.token_pieces(ids)) == whole
    text, state = "", IncrementalText()
    for token in ids:
        piece, state = tokenizer.decode_incremental((token,), state)
        text += piece
    assert text + tokenizer.flush(state) == whole


def test_a_table_of_units_splits_text_by_the_model(model_path: Path) -> None:
    model = SentencePieceModel(model_path)
    pieces = model.split("hello world")
    symbols = {0: "<blank>", 1: "<unk>", **dict(enumerate(dict.fromkeys(pieces), 2))}
    tokenizer = SymbolTableTokenizer(symbols, pieces=model)
    assert tokenizer.decode(tokenizer.encode("hello world")) == " hello world"
    assert 1 in tokenizer.encode("hello dog")


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bpe.model"
    path.write_bytes(b"not a model")
    with pytest.raises(CheckpointError, match="sentencepiece model"):
        SentencePieceTokenizer.from_file(path)
