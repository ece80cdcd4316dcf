"""What the keys of a JSONL row mean."""

from __future__ import annotations

import pytest
from oasr.types import RowFailure, Utterance


def ok(row) -> Utterance:
    assert isinstance(row, Utterance), row
    return row


def failed(row, *words: str) -> RowFailure:
    assert isinstance(row, RowFailure), row
    assert row.stage == "manifest"
    for word in words:
        assert word in row.message, row.message
    return row


DIALECTS = {
    "nemo": {"audio_filepath": "a.wav", "offset": 1.5, "duration": 2.25, "text": "hi"},
    "wenet": {"key": "k", "wav": "a.wav", "txt": "hi", "start": 1.5, "end": 3.75},
    "ours": {"id": "k", "audio": "a.wav", "text": "hi", "offset": 1.5, "duration": 2.25},
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_says_the_same(one, tmp_path, dialect):
    row = ok(one(DIALECTS[dialect]))
    assert (row.audio, row.offset, row.duration, row.text) == (str(tmp_path / "a.wav"), 1.5, 2.25, "hi")
    assert row.id == ("a.wav@1.500+2.250" if dialect == "nemo" else "k")
    assert row.row == DIALECTS[dialect]


def test_dialects_mix_in_one_row(one):
    row = ok(one({"key": "k", "audio_filepath": "a.wav", "txt": "x", "lang": "de", "channel": 1}))
    assert (row.id, row.text, row.language, row.channel) == ("k", "x", "de", 1)


def test_requests(one):
    row = ok(one({"id": "a", "audio": "a.wav", "language": "fr", "task": "translate", "prompt": ""}))
    assert (row.language, row.task, row.prompt) == ("fr", "translate", "")
    row = ok(one({"id": "a", "audio": "a.wav", "language": "", "task": ""}))
    assert (row.language, row.task, row.prompt) == (None, None, None)
    failed(one({"id": "a", "audio": "a.wav", "task": "sing"}), "task", "transcribe or translate", "'sing'")


def test_null_means_not_given(one):
    keys = (
        "offset",
        "duration",
        "text",
        "lang",
        "language",
        "channel",
        "task",
        "prompt",
        "start",
        "end",
        "key",
    )
    row = ok(one({"id": "a", "audio": "a.wav", **dict.fromkeys(keys)}))
    assert (row.offset, row.duration, row.text, row.language) == (0.0, None, None, None)
    assert row.row["prompt"] is None, "null keys of the row are carried too"


def test_empty_reference_is_a_reference(one):
    assert ok(one({"id": "a", "audio": "a.wav", "text": ""})).text == ""
    assert ok(one({"id": "a", "audio": "a.wav"})).text is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"id": "a"}, {"key": "b"}),
        ({"audio": "a.wav"}, {"wav": "b.wav"}),
        ({"audio": "a.wav"}, {"audio_filepath": "b.wav"}),
        ({"text": "x"}, {"txt": "y"}),
        ({"language": "en"}, {"lang": "de"}),
        ({"offset": 1.0}, {"start": 2.0}),
    ],
)
def test_two_keys_of_one_meaning_must_agree(one, first, second):
    base = {"id": "a", "audio": "a.wav"}
    failed(one({**base, **first, **second}), *first, *second, "disagree", "list.jsonl:1 (id=a)")
    (name,) = second
    ok(one({**base, **first, name: next(iter(first.values()))}))


def test_start_and_end(one):
    row = ok(one({"wav": "a.wav", "start": 1.1, "end": 3.3, "duration": 2.2}))
    assert (row.offset, row.duration) == (1.1, 2.2)
    assert ok(one({"wav": "a.wav", "end": 3})).duration == 3.0
    assert ok(one({"wav": "a.wav", "start": 3})).duration is None
    failed(
        one({"id": "a", "wav": "a.wav", "start": 1, "end": 3, "duration": 5}), "duration", "end", "disagree"
    )
    failed(one({"id": "a", "wav": "a.wav", "start": 3, "end": 3}), "end", "after the start")


@pytest.mark.parametrize("key", ["offset", "duration", "start", "end"])
@pytest.mark.parametrize("value", [-1, -0.001, True, "soon", "nan", "inf", "", [1], {"s": 1}, 1e10, 10**400])
def test_times_that_cannot_be_meant(one, key, value):
    failed(one({"id": "a", "audio": "a.wav", key: value}), f"{key}: expected seconds", "list.jsonl:1 (id=a)")


@pytest.mark.parametrize("key", ["offset", "duration", "start", "end"])
@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_times_that_json_cannot_say(one, key, literal):
    failed(one(f'{{"id": "a", "audio": "a.wav", "{key}": {literal}}}'), key, "list.jsonl:1 (id=a)")


@pytest.mark.parametrize("value", ["1.5", " 1.5 ", "+1.5", "15e-1", 1.5])
def test_decimal_strings_are_numbers(one, value):
    row = ok(one({"id": "a", "audio": "a.wav", "offset": value}))
    assert row.offset == 1.5
    assert row.row["offset"] == value


@pytest.mark.parametrize("value", ["1_5", "0x10", "١.٥", "1,5"])
def test_strings_that_only_python_or_a_locale_reads(one, value):
    failed(one({"id": "a", "audio": "a.wav", "offset": value}), "offset")


def test_duration_zero(one):
    assert ok(one({"id": "a", "audio": "a.wav", "duration": 0.0})).duration is None, "not measured"
    failed(one({"id": "a", "audio": "a.wav", "offset": 0.0, "duration": 0.0}), "duration", "> 0")


@pytest.mark.parametrize(
    ("value", "channel"),
    [(0, 0), (1, 1), ("1", 1), (1.0, 1), ("mix", "mix"), ("split", "split"), (None, None)],
)
def test_channel(one, value, channel):
    row = ok(one({"id": "a", "audio": "a.wav", "channel": value}))
    assert row.channel == channel
    assert not isinstance(row.channel, float)


@pytest.mark.parametrize("value", [-1, 0.5, True, "left", "-1", [0], "²"])
def test_channels_that_cannot_be_meant(one, value):
    failed(one({"id": "a", "audio": "a.wav", "channel": value}), "channel: expected")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("text", 5),
        ("txt", ["a"]),
        ("lang", 1),
        ("language", True),
        ("prompt", {}),
        ("task", 1),
        ("audio", 3),
        ("wav", {}),
    ],
)
def test_strings_must_be_strings(one, key, value):
    row = {"id": "a", "audio": "a.wav", key: value}
    if key == "wav":
        del row["audio"]
    failed(one(row), f"{key}: expected a string")


def test_ids(one):
    assert ok(one({"id": 7, "audio": "a.wav"})).id == "7"
    assert ok(one({"id": -(2**70), "audio": "a.wav"})).id == str(-(2**70))
    assert ok(one({"id": 7, "key": "7", "audio": "a.wav"})).id == "7"
    assert ok(one({"id": 0, "key": None, "audio": "a.wav"})).id == "0"
    assert ok(one({"id": " ", "audio": "a.wav"})).id == " "
    odd = 'a/b "c"\n😀 \u2028'
    assert ok(one({"id": odd, "audio": "a.wav"})).id == odd


@pytest.mark.parametrize("value", [1.0, True, "", [], {}, 10**400])
def test_ids_that_are_none(one, value):
    assert failed(one({"id": value, "audio": "a.wav"}), "id: expected a string").id == "list.jsonl:1"


def test_made_ids_differ_where_the_rows_do(rows):
    places = [
        {"audio": "a/x.wav"},
        {"audio": "b/x.wav"},
        {"audio": "x.wav"},
        {"audio": "x.mp3"},
        {"audio": "x.wav", "offset": 0},
        {"audio": "x.wav", "offset": 12.5},
        {"audio": "x.wav", "offset": 12.5, "duration": 3},
        {"audio": "x.wav", "offset": 12.5, "duration": 3, "channel": 0},
        {"audio": "x.wav", "channel": "split"},
        {"audio": "x.wav", "offset": 0.0004},
    ]
    assert [row.id for row in rows(*places)] == [
        "a/x.wav",
        "b/x.wav",
        "x.wav",
        "x.mp3",
        "x.wav@0.000",
        "x.wav@12.500",
        "x.wav@12.500+3.000",
        "x.wav@12.500+3.000#0",
        "x.wav#split",
        "x.wav@0.0004",
    ]
    assert [row.id for row in rows(*reversed(places))][::-1] == [row.id for row in rows(*places)]


def test_audio_must_be_named(one):
    failed(one({"id": "a"}), "audio, audio_filepath, wav", "list.jsonl:1 (id=a)")
    failed(one({"id": "a", "audio": None}), "audio, audio_filepath, wav")
    failed(one({"id": "a", "audio": ""}), "path")
    failed(one({"id": "a", "audio": "a\0.wav"}), "path")
