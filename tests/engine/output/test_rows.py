from __future__ import annotations

import json
import math

import pytest
from oasr.output.jsonl import decode_line, encode_line
from oasr.output.rows import RowExtras, failure_row, result_row, row_id
from oasr.types import RequestOutput, WordTiming


def output(**changes) -> RequestOutput:
    values = {
        "text": "hello there",
        "scores": (-1.23456789, -2.5),
        "nbest_texts": ("hello there", "hello dear"),
        "confidence": 0.987654321,
        "finish_reason": "stop",
        "language": "en",
        "duration_s": 1.23456,
    }
    return RequestOutput("u", **(values | changes))


def test_the_manifest_keys_come_first_unchanged_and_the_result_follows_in_fixed_order():
    row = {"id": "u", "audio": "a.wav", "text": "HELLO", "speaker": {"name": "x"}, "tags": [1, None]}
    result = result_row(row, "u", output())
    assert list(result.items())[:5] == list(row.items())
    assert list(result)[5:] == ["pred_text", "language", "duration", "score", "confidence", "finish_reason"]
    assert json.dumps(result).split("], ")[1] == (
        '"pred_text": "hello there", "language": "en", "duration": 1.235, '
        '"score": -1.2346, "confidence": 0.9877, "finish_reason": "stop"}'
    )


def test_optional_parts_appear_only_where_there_is_something_to_say():
    words = (WordTiming("hello", 0.12345, 0.5, 0.99996), WordTiming("there", 0.5, 1.0, 0.5))
    result = result_row(
        {"id": "u"},
        "u",
        output(words=words, timestamps=((0.12345, 0.3),), warnings=("cut short",), language_probability=0.5),
        RowExtras(nbest=True, scores={"wer": {"rate": 50.0}}),
    )
    assert list(result)[1:] == [
        "pred_text", "language", "language_probability", "duration", "score", "confidence", "finish_reason",
        "warnings", "words", "timestamps", "nbest", "wer",
    ]  # fmt: skip
    assert result["words"][0] == {"word": "hello", "start": 0.123, "end": 0.5, "confidence": 1.0}
    assert result["timestamps"] == [[0.123, 0.3]]
    assert result["nbest"] == [
        {"text": "hello there", "score": -1.2346},
        {"text": "hello dear", "score": -2.5},
    ]
    assert result["warnings"] == ["cut short"] and result["wer"] == {"rate": 50.0}


def test_nbest_is_written_when_asked_even_for_one_candidate_or_none():
    assert result_row({}, "u", output(scores=(-1.0,), nbest_texts=("a",)), RowExtras(nbest=True))[
        "nbest"
    ] == [{"text": "a", "score": -1.0}]
    assert result_row({}, "u", output(text="", scores=(), nbest_texts=()), RowExtras(nbest=True))[
        "nbest"
    ] == [{"text": "", "score": None}]


def test_language_and_duration_of_the_manifest_stay_unless_null():
    kept = result_row({"id": "u", "duration": 9.5, "language": "de", "n": 1}, "u", output())
    assert (kept["duration"], kept["language"]) == (9.5, "de")
    assert list(kept)[:4] == ["id", "duration", "language", "n"]
    filled = result_row({"id": "u", "duration": None, "language": None}, "u", output())
    assert (filled["duration"], filled["language"]) == (1.235, "en")
    assert result_row({"id": "u", "lang": "de"}, "u", output())["language"] == "en"


@pytest.mark.parametrize("zero", [0, 0.0, "0", "0.0"])
def test_a_duration_of_zero_counts_as_not_given(zero):
    measured = output(segments=((0.0, 1.23456, "hello there"),))
    result = result_row({"id": "u", "duration": zero}, "u", measured)
    assert result["duration"] == 1.235 and "segments" not in result
    for key in ("offset", "start", "end"):
        row = {"id": "u", "duration": zero, key: 0}
        assert result_row(row, "u", output())["duration"] == zero, (
            "an empty stretch is not an unmeasured file"
        )


def test_an_earlier_result_used_as_manifest_leaves_nothing_stale():
    first = result_row(
        {"id": "u", "audio": "a.wav"},
        "u",
        output(words=(WordTiming("x", 0, 1, 1),), warnings=("old",), language_probability=0.1),
        RowExtras(nbest=True, scores={"wer": {"rate": 1.0}}),
    )
    again = result_row(first, "u", output(text="new", scores=(-3.0,)))
    assert again == result_row({"id": "u", "audio": "a.wav"}, "u", output(text="new", scores=(-3.0,)))
    assert list(failure_row(first, "u", "audio", "gone")) == ["id", "audio", "language", "duration", "error"]
    assert "error" not in result_row(failure_row(first, "u", "audio", "gone"), "u", output())


def test_a_failed_output_becomes_an_error_row_without_transcript():
    failed = RequestOutput("u", error_stage="audio", error_message="a.wav: no samples", warnings=("short",))
    assert result_row({"id": "u", "pred_text": "stale"}, "u", failed) == {
        "id": "u",
        "error": {"stage": "audio", "message": "a.wav: no samples"},
        "warnings": ["short"],
    }


@pytest.mark.parametrize(
    ("row", "utterance_id", "keys"),
    [
        ({"id": "a"}, "a", {"id": "a"}),
        ({"id": 7}, "7", {"id": 7}),
        ({"key": "a", "wav": "x"}, "a", {"key": "a", "wav": "x"}),
        ({"audio_filepath": "x"}, "x-0", {"id": "x-0", "audio_filepath": "x"}),
        ({"id": "a", "wav": "x"}, "a-ch1", {"id": "a-ch1", "wav": "x"}),
        ({"key": "a", "wav": "x"}, "a-ch1", {"id": "a-ch1", "key": "a", "wav": "x"}),
        ({"id": None, "key": "a"}, "b", {"id": "b", "key": "a"}),
        ({}, "\udcff", {"id": "\udcff"}),
    ],
)
def test_every_row_carries_the_id_of_its_utterance(row, utterance_id, keys):
    for result in (result_row(row, utterance_id, output()), failure_row(row, utterance_id, "audio", "m")):
        assert {key: result[key] for key in keys} == keys
        assert list(result)[: len(keys)] == list(keys)
        assert row_id(decode_line(encode_line(result))) == utterance_id


def test_numbers_are_finite_and_never_minus_zero():
    result = result_row({}, "u", output(scores=(math.nan,), confidence=-0.00001, duration_s=math.inf))
    assert (result["score"], result["duration"]) == (None, None)
    assert str(result["confidence"]) == "0.0"


def test_silence_is_an_empty_transcript_and_not_a_failure():
    result = result_row({"id": "u"}, "u", output(text="", scores=(), confidence=None))
    assert (result["pred_text"], result["score"], result["confidence"]) == ("", None, None)
    assert "error" not in result


def test_the_row_given_is_not_changed():
    row = {"id": "u", "duration": None, "error": {"stage": "x"}}
    result_row(row, "v", output())
    assert row == {"id": "u", "duration": None, "error": {"stage": "x"}}
