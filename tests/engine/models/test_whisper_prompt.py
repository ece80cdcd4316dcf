"""Task, language and previous text reach the prompt by the checkpoint's own ids."""

from __future__ import annotations

import pytest
from helpers.whisper_checkpoints import IDS, VOCAB, generation_config, write_tokenizer
from oasr.checkpoints.whisper_tokens import whisper_tokens
from oasr.errors import RequestError
from oasr.models.whisper_prompt import WhisperPrompt
from oasr.tokenizers.huggingface import HuggingFaceTokenizer

SOT, EN, DE, LAST = (IDS[f"<|{n}|>"] for n in ("startoftranscript", "en", "de", "notimestamps"))
TRANSCRIBE, TRANSLATE, PREV = (IDS[f"<|{n}|>"] for n in ("transcribe", "translate", "startofprev"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return HuggingFaceTokenizer.from_file(write_tokenizer(tmp_path_factory.mktemp("tokenizer")))


def prompt_of(tokenizer, **changes) -> WhisperPrompt:
    return WhisperPrompt(whisper_tokens(tokenizer, VOCAB, generation_config(**changes), {}), tokenizer, 11)


def test_substitution_keeps_the_length(tokenizer) -> None:
    prompt = prompt_of(tokenizer)
    assert prompt.sot_sequence(None, None) == (SOT, EN, TRANSCRIBE, LAST)
    assert prompt.sot_sequence("translate", "German") == (SOT, DE, TRANSLATE, LAST)
    assert prompt.sot_sequence("transcribe", "yue") == (SOT, IDS["<|yue|>"], TRANSCRIBE, LAST)
    assert prompt.default_language == "en"


def test_slots_are_found_by_value_wherever_they_stand(tokenizer) -> None:
    forced = [[1, TRANSLATE], [2, LAST], [3, DE]]
    prompt = prompt_of(tokenizer, forced_decoder_ids=forced)
    assert prompt.sot_sequence("transcribe", "zh") == (SOT, TRANSCRIBE, LAST, IDS["<|zh|>"])
    assert prompt.default_language == "de"


def test_shifted_ids_are_not_pinned(tokenizer) -> None:
    """A release that moves every id by one must not select the neighbouring language."""
    moved = {f"<|{code}|>": 30 + i for i, code in enumerate(("en", "zh", "de"))}
    prompt = prompt_of(tokenizer, lang_to_id=moved, task_to_id={"transcribe": 50, "translate": 51},
                       forced_decoder_ids=[[1, None], [2, 50]])  # fmt: skip
    assert prompt.sot_sequence("translate", "de") == (SOT, 32, 51, LAST)


@pytest.mark.parametrize("language", ["xx", "klingon", "fr", "", "e n"])
def test_unknown_language_names_the_known_ones(language: str, tokenizer) -> None:
    with pytest.raises(RequestError, match=r"not one of this checkpoint's 4: de \(german\), en \(english\)"):
        prompt_of(tokenizer).validate_language(language)


def test_english_only_refuses_what_it_cannot_do(tokenizer) -> None:
    prompt = prompt_of(tokenizer, is_multilingual=False, forced_decoder_ids=[[1, LAST]])
    assert prompt.sot_sequence(None, None) == prompt.sot_sequence("transcribe", "english") == (SOT, LAST)
    assert prompt.default_language == "en"
    with pytest.raises(RequestError, match="English-only"):
        prompt.sot_sequence(None, "de")
    with pytest.raises(RequestError, match="English-only"):
        prompt.sot_sequence("translate", None)


def test_a_prompt_without_a_slot_refuses_what_would_go_there(tokenizer) -> None:
    prompt = prompt_of(tokenizer, forced_decoder_ids=[[1, None], [2, LAST]])
    assert prompt.sot_sequence(None, "de") == (SOT, DE, LAST)
    with pytest.raises(RequestError, match="no task token to replace"):
        prompt.sot_sequence("translate", None)
    prompt = prompt_of(tokenizer, forced_decoder_ids=[[1, TRANSCRIBE]])
    assert prompt.default_language is None
    with pytest.raises(RequestError, match="no language token to replace"):
        prompt.sot_sequence(None, "de")


def test_a_task_the_checkpoint_does_not_know(tokenizer) -> None:
    prompt = prompt_of(tokenizer, task_to_id={"transcribe": TRANSCRIBE})
    with pytest.raises(RequestError, match="'translate': this checkpoint knows transcribe"):
        prompt.validate_task("translate")


def test_previous_text(tokenizer) -> None:
    prompt = prompt_of(tokenizer)
    assert prompt.previous_text("  Dr. X ") == (PREV, *b" Dr. X")
    assert prompt.previous_text("0123456789ABCDE") == (PREV, *b"456789ABCDE")  # its last 11 tokens
    assert prompt.previous_text(None) == prompt.previous_text(" \n") == ()


def test_previous_text_needs_its_token(tmp_path) -> None:
    control = tuple(t for t in IDS if t != "<|startofprev|>")
    tokenizer = HuggingFaceTokenizer.from_file(write_tokenizer(tmp_path, control))
    with pytest.raises(RequestError, match="startofprev"):
        prompt_of(tokenizer, prev_sot_token_id=...).previous_text("hello")
