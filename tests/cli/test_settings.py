"""Flags read together."""

from __future__ import annotations

import pytest
from oasr.config import EngineConfig
from oasr.errors import OptionsError
from oasr.types import DecodingOptions

from oasr_cli import settings
from oasr_cli.settings import Job, RunOptions


def test_lists_and_pairs():
    assert settings.comma_list(["json, txt", "jsonl", "txt"]) == ("json", "txt", "jsonl")
    assert settings.comma_list(None) == ()
    assert settings.key_values(["a=1", "b=x=y", "c=", "a=1"]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize(("value", "meant"), [("mix", "mix"), ("split", "split"), ("0", 0), ("12", 12)])
def test_channels(value, meant):
    assert settings.channel(value) == meant


@pytest.mark.parametrize("value", ["", "-1", "left", "1.0", "²", "1" * 5000])
def test_channels_that_are_none(value):
    with pytest.raises(OptionsError, match="--channel"):
        settings.channel(value)


def test_the_decoder_type_implies_ctc():
    assert settings.decode_method(None, "ctc_wfst") == {"decode_method": "ctc", "decoder_type": "ctc_wfst"}
    assert settings.decode_method("aed", None) == {"decode_method": "aed"}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("max_batch_size: expected", "--batch-size: expected"),
        ("top_p: expected", "--top-p: expected"),
        ("beam: expected an int", "--decode-option beam: expected an int"),
        ("unknown decode option 'x'; valid: beam", "unknown decode option 'x'; valid: beam"),
        ("some words: more", "some words: more"),
    ],
)
def test_errors_about_fields_name_the_flag(message, told):
    with pytest.raises(OptionsError) as raised, settings.flag_names(["beam"]):
        raise OptionsError(message)
    assert str(raised.value) == told


def test_sampling_flags_go_with_a_temperature():
    Job(RunOptions(("x",)), EngineConfig(), DecodingOptions(temperature=1.0, top_k=3, top_p=0.5))
    with pytest.raises(OptionsError, match=r"--top-k.*--temperature"):
        Job(RunOptions(("x",)), EngineConfig(), DecodingOptions(top_k=3))
