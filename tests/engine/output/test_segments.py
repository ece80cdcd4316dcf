"""Segments: the same from the engine's result and from the row that was written."""

from __future__ import annotations

import pytest
from helpers.transcripts import row_of
from oasr.output.rows import result_row
from oasr.output.segments import segments_of
from oasr.types import RequestOutput, WordTiming


def output(*segments, text="one two", duration=10.0, words=None):
    return RequestOutput("u", text=text, segments=segments, duration_s=duration, words=words)


def spans(row, result=None):
    return [(s.start, s.end, s.text) for s in segments_of(row, result)]


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"offset": 5.0},
        {"offset": "5.0"},
        {"start": 5},
        {"duration": 10.004},
        {"offset": None, "start": 5.0},
    ],
)
def test_one_segment_that_the_row_tells_itself_is_not_written(keys):
    start = 5.0 if keys.get("offset") or keys.get("start") else 0.0
    result = output((start, start + 10.0, " one two "))
    row = row_of(result, **keys)
    assert "segments" not in row
    assert spans(row) == spans(row, result) == [(start, start + keys.get("duration", 10.0), "one two")]


@pytest.mark.parametrize(
    ("segments", "keys"),
    [
        (((0.0, 30.0, "one"), (30.0, 40.12345, "two")), {}),
        (((0.0, 30.0, ""), (30.0, 40.0, "one two")), {}),  # the first window was silent
        (((0.0, 8.7, "one two"),), {"duration": 10.0}),  # the list said more than there is
    ],
)
def test_what_the_row_does_not_tell_is_written(segments, keys):
    result = output(*segments)
    row = row_of(result, **keys)
    expected = [(start, round(end, 3), text) for start, end, text in segments if text]
    assert row["segments"] == [{"start": s, "end": e, "text": t} for s, e, t in expected]
    assert list(row)[-1] == "segments" and spans(row) == spans(row, result) == expected


def test_silence_and_failures_have_no_segments():
    silent = output((0.0, 10.0, ""), text="")
    assert "segments" not in row_of(silent) and spans(row_of(silent), silent) == []
    failed = RequestOutput("u", error_stage="decode", error_message="broke")
    assert spans(row_of(failed)) == []


def test_segments_of_an_earlier_run_are_dropped():
    first = row_of(output((0.0, 30.0, "one"), (30.0, 40.0, "two")))
    assert "segments" not in result_row(first, "u", output((0.0, 10.0, "one two")))


@pytest.mark.parametrize(("text", "words"), [("six two", ["six", "two"]), ("六 二三", ["六", "二", "三"])])
def test_windows_that_share_speech_keep_the_words_of_their_texts(text, words):
    """They meet at a word, which may be said after the time at which the second one takes over."""
    times = [WordTiming(word, 30.5 + i, 31.0 + i, 1.0) for i, word in enumerate(words)]
    first, second = text.split()
    result = output((0.0, 30.0, first), (30.0, 40.0, second), text=text, words=tuple(times))
    for source in (result, None):
        found = segments_of(row_of(result), source)
        assert [[word["word"] for word in s.words] for s in found] == [words[:1], words[1:]]


def test_words_of_another_text_go_to_the_segment_of_their_middle():
    words = tuple(
        WordTiming(w, t, t + 2, 1.0) for w, t in (("a", 0.0), ("b", 28.5), ("c", 29.5), ("d", 50.0))
    )
    result = output((0.0, 30.0, "A b"), (30.0, 40.0, "c d"), text="A b c d", words=words)
    for source in (result, None):
        found = segments_of(row_of(result), source)
        assert [[word["word"] for word in segment.words] for segment in found] == [["a", "b"], ["c", "d"]]
