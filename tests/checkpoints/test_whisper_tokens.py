"""Control ids come from the checkpoint: forced ids, flags, tokenizer, in that order."""

from __future__ import annotations

import pytest
from helpers.whisper_checkpoints import CONTROL, IDS, VOCAB, generation_config, write_tokenizer
from oasr.checkpoints.whisper_tokens import whisper_tokens
from oasr.errors import CheckpointError
from oasr.tokenizers.huggingface import HuggingFaceTokenizer

SOT, EN, LAST = IDS["<|startoftranscript|>"], IDS["<|en|>"], IDS["<|notimestamps|>"]
TRANSCRIBE, TRANSLATE, DE = IDS["<|transcribe|>"], IDS["<|translate|>"], IDS["<|de|>"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return HuggingFaceTokenizer.from_file(write_tokenizer(tmp_path_factory.mktemp("tokenizer")))


def test_open_language_slot_is_filled_with_english_and_the_end_appended(tokenizer) -> None:
    tokens = whisper_tokens(tokenizer, VOCAB, generation_config(), {})
    assert tokens.sot_sequence == (SOT, EN, TRANSCRIBE, LAST)
    assert tokens.is_multilingual and tokens.language_ids["yue"] == IDS["<|yue|>"]
    assert list(tokens.language_ids) == ["en", "zh", "de", "yue"]
    assert tokens.alignment_heads == ((0, 1), (2, 3))
    assert tokens.no_speech_id == IDS["<|nospeech|>"]


def test_generation_config_goes_before_config(tokenizer) -> None:
    config = {"forced_decoder_ids": [[1, IDS["<|de|>"]], [2, TRANSCRIBE], [3, LAST]], "suppress_tokens": [9]}
    tokens = whisper_tokens(tokenizer, VOCAB, generation_config(), config)
    assert tokens.sot_sequence[1] == EN and tokens.suppress_ids == (1, 2, 7)
    tokens = whisper_tokens(tokenizer, VOCAB, {}, config)
    assert tokens.sot_sequence == (SOT, IDS["<|de|>"], TRANSCRIBE, LAST)
    assert tokens.is_multilingual and tokens.suppress_ids == (9,)


def test_forced_ids_are_put_in_their_own_order(tokenizer) -> None:
    forced = [[3, LAST], [1, IDS["<|zh|>"]], [2, IDS["<|translate|>"]]]
    tokens = whisper_tokens(tokenizer, VOCAB, generation_config(forced_decoder_ids=forced), {})
    assert tokens.sot_sequence == (SOT, IDS["<|zh|>"], IDS["<|translate|>"], LAST)


def test_ids_of_the_snapshot_win_over_the_tokenizer(tokenizer) -> None:
    shifted = generation_config(lang_to_id={"<|en|>": 40, "<|de|>": 41}, task_to_id={"transcribe": 42})
    tokens = whisper_tokens(tokenizer, VOCAB, {**shifted, "forced_decoder_ids": [[1, None], [2, 42]]}, {})
    assert tokens.sot_sequence == (SOT, 40, 42, LAST) and tokens.language_ids == {"en": 40, "de": 41}


def test_english_only_by_prompt_and_by_flag(tokenizer) -> None:
    tokens = whisper_tokens(tokenizer, VOCAB, {}, {"forced_decoder_ids": [[1, LAST]]})
    assert not tokens.is_multilingual and tokens.sot_sequence == (SOT, LAST)
    flagged = generation_config(is_multilingual=False, forced_decoder_ids=...)
    assert whisper_tokens(tokenizer, VOCAB, flagged, {}).sot_sequence == (SOT, LAST)


@pytest.mark.parametrize(("size", "multilingual"), [(51864, False), (51865, True), (51866, True)])
def test_without_flag_or_prompt_the_vocabulary_tells(size: int, multilingual: bool, tokenizer) -> None:
    tokens = whisper_tokens(tokenizer, size, {}, {"suppress_ids": [4], "suppress_ids_begin": [3]})
    assert tokens.is_multilingual is multilingual
    assert tokens.sot_sequence == ((SOT, EN, TRANSCRIBE, LAST) if multilingual else (SOT, LAST))
    assert (tokens.suppress_ids, tokens.begin_suppress_ids) == ((4,), (3,))


@pytest.mark.parametrize("said", ["german", "German", "de", "<|de|>", "de-AT"])
def test_the_snapshots_language_and_task_go_before_forced_ids(said: str, tokenizer) -> None:
    """The usual recipe of fine-tuning; config.json keeps the English that it was released with."""
    config = {"forced_decoder_ids": [[1, EN], [2, TRANSCRIBE], [3, LAST]]}
    for forced in (None, [[1, None], [2, TRANSCRIBE]], [[1, IDS["<|zh|>"]], [2, TRANSCRIBE]]):
        stated = generation_config(language=said, task="translate", forced_decoder_ids=forced)
        tokens = whisper_tokens(tokenizer, VOCAB, stated, config)
        assert (tokens.settled_language, tokens.sot_sequence) == ("de", (SOT, DE, TRANSLATE, LAST))
    tokens = whisper_tokens(tokenizer, VOCAB, generation_config(language=said), config)
    assert (tokens.settled_language, tokens.sot_sequence) == ("de", (SOT, DE, TRANSCRIBE, LAST))


def test_a_task_alone_and_released_snapshots_leave_the_language_open(tokenizer) -> None:
    pinned = {"forced_decoder_ids": [[1, EN], [2, TRANSCRIBE], [3, LAST]]}
    for config in ({}, pinned):
        released = whisper_tokens(tokenizer, VOCAB, generation_config(), config)
        assert (released.settled_language, released.sot_sequence) == (None, (SOT, EN, TRANSCRIBE, LAST))
        unsaid = whisper_tokens(tokenizer, VOCAB, generation_config(forced_decoder_ids=None), config)
        assert (unsaid.settled_language, unsaid.sot_sequence) == (None, (SOT, EN, TRANSCRIBE, LAST))
    # CTranslate2 and the released layout have no generation_config.json.
    for config in (pinned, {**pinned, "language": "de", "task": "translate"}):
        tokens = whisper_tokens(tokenizer, VOCAB, {}, config)
        assert (tokens.settled_language, tokens.sot_sequence) == (None, (SOT, EN, TRANSCRIBE, LAST))
    forced = [[1, DE], [2, TRANSCRIBE]]
    stated = generation_config(task="translate", forced_decoder_ids=forced)
    tokens = whisper_tokens(tokenizer, VOCAB, stated, {})
    assert (tokens.settled_language, tokens.sot_sequence) == (None, (SOT, EN, TRANSLATE, LAST))


def test_a_forced_language_is_settled(tokenizer) -> None:
    forced = generation_config(forced_decoder_ids=[[1, DE], [2, TRANSLATE]])
    tokens = whisper_tokens(tokenizer, VOCAB, forced, {})
    assert (tokens.settled_language, tokens.sot_sequence) == ("de", (SOT, DE, TRANSLATE, LAST))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"language": "klingon"}, r"language 'klingon' is not one of this checkpoint's 4: de \(german\), en"),
        ({"language": ""}, "language '' is not one"),
        ({"language": ["de"]}, r"language \['de'\] is not one"),
        ({"task": "summarise"}, "task 'summarise': this checkpoint knows transcribe, translate"),
        ({"task": ["translate"]}, "unhashable"),
        ({"language": "de", "is_multilingual": False}, r"one of this checkpoint's 1: en \(english\)"),
        ({"task": "translate", "is_multilingual": False}, "this checkpoint knows transcribe$"),
    ],
)
def test_a_language_or_task_that_nobody_knows(changes: dict, message: str, tokenizer) -> None:
    with pytest.raises(CheckpointError, match=message):
        whisper_tokens(tokenizer, VOCAB, generation_config(**changes), {})


def test_english_only_may_say_so(tokenizer) -> None:
    stated = generation_config(language="english", task="transcribe", is_multilingual=False,
                               forced_decoder_ids=[[1, LAST]])  # fmt: skip
    assert whisper_tokens(tokenizer, VOCAB, stated, {}).sot_sequence == (SOT, LAST)


def test_multilingual_without_language_tokens(tmp_path) -> None:
    bare = HuggingFaceTokenizer.from_file(write_tokenizer(tmp_path, tuple(t for t in CONTROL if len(t) > 7)))
    for size, generation in ((51865, {}), (VOCAB, {"is_multilingual": True})):
        with pytest.raises(CheckpointError, match="multilingual Whisper needs language tokens"):
            whisper_tokens(bare, size, generation, {})


def test_suppress_lists_drop_what_is_no_id(tokenizer) -> None:
    tokens = whisper_tokens(tokenizer, VOCAB, generation_config(suppress_tokens=[-1, 5, 5, 9999]), {})
    assert tokens.suppress_ids == (5,)
    assert whisper_tokens(tokenizer, VOCAB, generation_config(suppress_tokens=...), {}).suppress_ids == ()


def test_lists_of_end_tokens_count_by_their_first(tokenizer) -> None:
    assert whisper_tokens(tokenizer, VOCAB, generation_config(eos_token_id=[7, 8]), {}).eos_id == 7


def test_no_start_token_anywhere(tmp_path) -> None:
    bare = HuggingFaceTokenizer.from_file(write_tokenizer(tmp_path, CONTROL[:1]))
    with pytest.raises(CheckpointError, match="startoftranscript"):
        whisper_tokens(bare, VOCAB, {}, {"eos_token_id": 1})


def test_ids_outside_the_vocabulary(tokenizer) -> None:
    with pytest.raises(CheckpointError, match="outside the model's vocabulary of 260"):
        whisper_tokens(tokenizer, 260, generation_config(), {})


@pytest.mark.weights("tiny.en", "base")
@pytest.mark.parametrize("name", ["tiny.en", "base"])
def test_computed_suppress_lists_equal_the_published_ones(name: str) -> None:
    from oasr.checkpoints import catalog
    from oasr.checkpoints.files import read_json

    folder = catalog.locate(name)
    config = read_json(folder / "config.json")
    tokenizer = HuggingFaceTokenizer.from_folder(folder)
    computed = whisper_tokens(tokenizer, catalog.get(name).vocab_size, {}, {})
    assert set(computed.suppress_ids) == set(config["suppress_ids"])
    assert set(computed.begin_suppress_ids) == set(config["suppress_ids_begin"])
    stored = whisper_tokens(tokenizer, catalog.get(name).vocab_size, {}, config)
    assert stored.suppress_ids == computed.suppress_ids
    assert stored.language_ids == computed.language_ids and len(stored.language_ids) == 99
