"""tokenizer.json and its predecessors."""

from __future__ import annotations

import json

import pytest
from helpers.whisper_checkpoints import CONTROL, IDS, write_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from oasr.errors import CheckpointError
from oasr.tokenizers.base import IncrementalText
from oasr.tokenizers.huggingface import HuggingFaceTokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return HuggingFaceTokenizer.from_file(write_tokenizer(tmp_path_factory.mktemp("t")))


@given(text=st.text(max_size=40))
def test_round_trip_of_any_text(tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text and "".join(tokenizer.token_pieces(ids)) == text


def test_control_tokens_render_as_nothing(tokenizer) -> None:
    assert tokenizer.special_ids == IDS and tokenizer.special_id("<|xx|>") is None
    ids = [IDS["<|startoftranscript|>"], *tokenizer.encode("ok"), IDS["<|endoftext|>"], 10**6, -1]
    assert tokenizer.decode(ids) == "ok"
    assert tokenizer.token_pieces(ids) == ["", "o", "k", "", "", ""]


def test_control_tokens_in_a_text_are_text(tokenizer) -> None:
    """A prompt must not be able to steer the decoder."""
    ids = tokenizer.encode("a<|endoftext|>b")
    assert not set(ids) & set(IDS.values()) and tokenizer.decode(ids) == "a<|endoftext|>b"


@pytest.mark.parametrize("byte_level", [True, False])
def test_timestamps_listed_as_plain_text_render_as_nothing(tmp_path, byte_level: bool) -> None:
    """Other added words are text, and nobody can write a timestamp into a prompt."""
    from tokenizers import AddedToken, Tokenizer, decoders

    path = write_tokenizer(tmp_path)
    backend = Tokenizer.from_file(str(path))
    words = ["<|0.00|>", "<|30.00|>", "<|v1.0|>", "Zeit"]
    backend.add_tokens([AddedToken(word, special=False, normalized=False) for word in words])
    if not byte_level:
        backend.decoder = decoders.Fuse()
    backend.save(str(path))
    tokenizer = HuggingFaceTokenizer.from_file(path)
    first, last, version, word = (backend.token_to_id(word) for word in words)
    ids = [first, *tokenizer.encode("ok"), last, version, word]
    assert tokenizer.decode(ids) == "ok<|v1.0|>Zeit"
    assert tokenizer.token_pieces(ids) == ["", "o", "k", "", "<|v1.0|>", "Zeit"]
    assert tokenizer.special_id("<|30.00|>") == last and first not in tokenizer.encode("<|0.00|>")


def test_incremental_text_holds_back_half_a_character(tokenizer) -> None:
    first, second = tokenizer.encode("é")
    text, state = tokenizer.decode_incremental([first])
    assert text == "" and tokenizer.flush(state) == "\ufffd"
    text, state = tokenizer.decode_incremental([second], state)
    assert text == "é" and tokenizer.flush(state) == ""


def test_vocab_and_merges(tmp_path) -> None:
    source = json.loads(write_tokenizer(tmp_path / "json").read_text())
    folder = tmp_path / "old"
    folder.mkdir()
    vocab = {**source["model"]["vocab"], "hi": 256, "<|endoftext|>": 257}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\nh i\n")
    added = {token: 258 + i for i, token in enumerate(CONTROL[1:])}
    (folder / "added_tokens.json").write_text(json.dumps(added))
    tokenizer = HuggingFaceTokenizer.from_folder(folder)
    assert tokenizer.encode("hi") == [256] and tokenizer.decode([256, 257, 258]) == "hi"
    assert tokenizer.special_id("<|endoftext|>") == 257
    assert tokenizer.special_id("<|notimestamps|>") == added["<|notimestamps|>"]
    (folder / "added_tokens.json").write_text(json.dumps({**added, "<|gap|>": 9999}))
    with pytest.raises(CheckpointError, match=r"numbers '<\|gap\|>' out of order"):
        HuggingFaceTokenizer.from_folder(folder)


def test_other_decoders_go_through_the_library(tmp_path) -> None:
    """A sentence-piece style vocabulary: no byte table, the default incremental decode."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = ["▁the", "▁cat", "s", "▁sat", "<unk>"]
    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = HuggingFaceTokenizer.from_folder(tmp_path)
    ids = [0, 1, 2, 3, 99]
    assert tokenizer.decode(ids) == "the cats sat"
    assert "".join(tokenizer.token_pieces(ids)) == "the cats sat"
    text, state = tokenizer.decode_incremental([0, 1], IncrementalText())
    more, _ = tokenizer.decode_incremental([2, 3], state)
    assert text + more == "the cats sat"


def test_nothing_there_and_rubbish(tmp_path) -> None:
    assert HuggingFaceTokenizer.from_folder(tmp_path) is None
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"not a readable tokenizer\.json"):
        HuggingFaceTokenizer.from_folder(tmp_path)


@pytest.mark.weights
def test_real_vocabulary_equals_the_librarys_decode(tiny_en_dir) -> None:
    from tokenizers import Tokenizer

    ours = HuggingFaceTokenizer.from_folder(tiny_en_dir)
    theirs = Tokenizer.from_file(str(tiny_en_dir / "tokenizer.json"))
    for text in (" Mr. Quilter is the apostle, isn't he?", " naïve café 日本語 🎉", " 3.5% of $2,000"):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids) == text
        for cut in range(len(ids)):  # a cut inside a character gives the same replacement characters
            assert ours.decode(ids[:cut]) == theirs.decode(ids[:cut])
