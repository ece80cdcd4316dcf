from __future__ import annotations

import json

import pytest
from helpers.transcripts import row_of, spoken
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.errors import OptionsError, OutputError
from oasr.output.cue_rules import CueRules, WriterSettings
from oasr.output.rows import result_row
from oasr.output.writers import WRITERS, build_writers, render
from oasr.types import RequestOutput, WordTiming

OUTPUT = RequestOutput(
    "u",
    text="one two three",
    language="en",
    duration_s=70.0,
    segments=((5.0, 35.0, "one two"), (35.0, 50.0, " "), (50.0, 75.0, " three ")),
    words=(
        WordTiming("one", 6.0, 7.0, 0.9),
        WordTiming("two", 34.0, 34.9, 0.8),
        WordTiming("three", 50.0, 51.0, 0.75),
    ),
)
ROW = result_row({"id": "u", "offset": 5.0}, "u", OUTPUT)


def show(name, row=ROW, output=OUTPUT):
    return render(name, build_writers([name])[name], row, output).decode()


def test_json_has_the_shape_that_whisper_readers_expect():
    assert json.loads(show("json")) == {
        "id": "u",
        "text": "one two three",
        "language": "en",
        "duration": 70.0,
        "segments": [
            {"id": 0, "start": 5.0, "end": 35.0, "text": "one two", "words": [
                {"word": "one", "start": 6.0, "end": 7.0, "probability": 0.9},
                {"word": " two", "start": 34.0, "end": 34.9, "probability": 0.8}]},
            {"id": 1, "start": 50.0, "end": 75.0, "text": "three", "words": [
                {"word": "three", "start": 50.0, "end": 51.0, "probability": 0.75}]},
        ],
    }  # fmt: skip


def test_json_without_word_times_has_no_words_key():
    plain = RequestOutput("u", text="hi", duration_s=1.0, segments=((0.0, 1.0, "hi"),))
    (segment,) = json.loads(show("json", result_row({"id": "u"}, "u", plain), plain))["segments"]
    assert segment == {"id": 0, "start": 0.0, "end": 1.0, "text": "hi"}


def test_the_words_of_a_segment_joined_are_its_text():
    output = spoken("He said: “你好，世界！” (twice) — and left…")
    (segment,) = json.loads(show("json", row_of(output), output))["segments"]
    assert "".join(word["word"] for word in segment["words"]) == segment["text"] == output.text


@pytest.mark.parametrize("name", ["json", "txt", "srt", "vtt", "tsv"])
def test_the_row_alone_is_enough_for_a_format_asked_for_later(name):
    assert show(name, ROW, None) == show(name)
    assert ROW["segments"][1] == {"start": 50.0, "end": 75.0, "text": "three"}


def test_silence_gives_no_segments():
    silent = RequestOutput("u", text="", duration_s=9.0, segments=((0.0, 9.0, ""),))
    row = result_row({"id": "u"}, "u", silent)
    assert json.loads(show("json", row, silent))["segments"] == []
    assert show("txt", row, silent) == ""


def test_txt_has_a_line_a_segment():
    assert show("txt") == "one two\nthree\n"


def test_jsonl_is_always_among_the_formats_and_each_comes_once():
    assert list(build_writers(["txt", "jsonl", "txt"])) == ["jsonl", "txt"]
    with pytest.raises(
        OptionsError,
        match=r"unknown output format 'srtt'; known: ctm, json, jsonl, kaldi, rttm, srt, tsv, txt, vtt",
    ):
        build_writers(["srtt"])


def test_every_registered_writer_follows_the_protocol():
    for _, factory in WRITERS.items():
        writer = factory()
        assert writer.scope in ("utterance", "run") and writer.suffix
        row = ROW | {"speech": [[6.0, 7.0]]}
        assert isinstance(writer.render(row, OUTPUT), str)
        assert isinstance(writer.render(row, None), str)


def test_settings_reach_the_writers_that_listen_and_no_others(monkeypatch):
    class Listening:
        scope, suffix = "utterance", ".x"

        def __init__(self, width):
            self.width = width

        @classmethod
        def configured(cls, settings):
            return cls(settings.cues.max_line_width)

    monkeypatch.setitem(WRITERS._loaded, "listening", Listening)
    settings = WriterSettings(CueRules(max_line_width=20))
    made = build_writers(["listening", "srt", "txt"], settings)
    assert made["listening"].width == made["srt"].settings.cues.max_line_width == 20
    assert build_writers(["listening"])["listening"].width is None


def test_a_writer_that_breaks_is_named_with_its_row():
    class Broken:
        scope, suffix = "utterance", ".x"

        def render(self, row, output):
            raise ZeroDivisionError("oops")

    with pytest.raises(
        OutputError, match="output format 'x' cannot write the row 'u': ZeroDivisionError: oops"
    ):
        render("x", Broken(), ROW, OUTPUT)


@settings(deadline=None)
@given(
    text=st.text(alphabet=st.characters(exclude_categories=())),
    spans=st.lists(st.tuples(st.floats(), st.floats(), st.text()), max_size=4),
    words=st.lists(st.tuples(st.text(), st.floats(), st.floats(), st.floats()), max_size=4),
)
def test_no_result_breaks_a_writer(text, spans, words):
    odd = RequestOutput(
        "u",
        text=text,
        segments=tuple(spans),
        words=tuple(WordTiming(*word) for word in words),
        duration_s=1.0,
    )
    row = result_row({"id": "u", "offset": "?"}, "u", odd)
    for name in ("json", "jsonl", "txt", "srt", "vtt", "tsv", "kaldi", "ctm"):
        for output in (odd, None):
            show(name, row, output)
