"""Cues from words: the limits hold for any words, and sentences, clauses and pauses decide where one ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
import regex
from helpers.transcripts import row_of, spoken, timed
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.errors import OptionsError
from oasr.output.cue_rules import CueRules
from oasr.output.cues import Cue, cues_of
from oasr.output.graphemes import columns
from oasr.types import RequestOutput, WordTiming

LONG = (
    "Printing, in the only sense with which we are at present concerned, differs from most if not from all "
    "the arts and crafts represented in the exhibition."
)
CHINESE = (
    "印刷在现代意义上是相对较新的，因为尽管中国人在几个世纪前就从木刻版上印刷，荷兰的木刻者也用类似的方法。"
)


def cues(output: RequestOutput, **rules) -> list[Cue]:
    return cues_of(row_of(output), output, CueRules(**rules))


def texts(output: RequestOutput, **rules) -> list[list[str]]:
    return [cue.text_lines for cue in cues(output, **rules)]


# Where a cue ends -----------------------------------------------------------------------------


def test_a_cue_is_a_sentence_where_that_fits():
    assert texts(spoken("This is the first one. And this is the next.")) == [
        ["This is the first one."],
        ["And this is the next."],
    ]


def test_sentences_too_short_to_be_read_alone_share_a_cue():
    assert texts(spoken("Yes. I know that.")) == [["Yes. I know that."]]
    assert texts(spoken("Yes. I know that.", pauses={1: 0.9})) == [["Yes."], ["I know that."]]


def test_a_pause_always_ends_a_cue():
    halves = [["we were"], ["just talking"]]
    assert texts(spoken("we were just talking", pauses={2: 1.0})) == halves
    assert texts(spoken("we were just talking", pauses={2: 0.99})) == [["we were just talking"]]
    assert texts(spoken("we were just talking", pauses={2: 0.5}), cue_pause=0.5) == halves


def test_a_long_sentence_is_cut_at_its_marks():
    found = texts(spoken(LONG, rate=0.2))
    assert " ".join(" ".join(lines) for lines in found) == LONG
    assert found[0][-1].endswith(",") and all(1 <= len(lines) <= 2 for lines in found)


def test_a_title_ends_no_sentence():
    assert texts(spoken("We met Mr. Smith in town today.")) == [["We met Mr. Smith in town today."]]


# Lines ----------------------------------------------------------------------------------------


def test_lines_are_of_like_length_and_the_first_is_rather_the_shorter():
    (lines,) = texts(spoken("It was not so much the loss of the cotton itself", rate=0.2))
    assert lines == ["It was not so much the", "loss of the cotton itself"]


def test_a_line_ends_after_a_mark_where_that_costs_little():
    (lines,) = texts(spoken("It was the loss, and not so much the cotton there", rate=0.2))
    assert lines == ["It was the loss,", "and not so much the cotton there"]


def test_more_lines_or_one():
    (lines,) = texts(spoken(LONG, rate=0.1), max_line_count=9)
    assert len(lines) == 4 and max(map(columns, lines)) <= 42
    assert all(len(lines) == 1 for lines in texts(spoken(LONG, rate=0.1), max_line_count=1))


def test_chinese_breaks_between_characters_within_32_columns_and_never_before_a_mark():
    found = texts(spoken(CHINESE, rate=0.2))
    assert "".join("".join(lines) for lines in found) == CHINESE
    lines = [line for lines in found for line in lines]
    assert max(map(columns, lines)) <= 32 and all(line[0] not in "，。" for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "مرحبا بالعالم، هذا نص عربي طويل لاختبار كسر الأسطر في الترجمة؟ نعم هذا هو.",
        "שלום עולם, זהו טקסט ארוך בעברית כדי לבדוק את שבירת השורות בכתוביות. כן.",
        "한국어 자막은 낱말 안에서 나누지 않고 띄어쓰기에서 나눕니다 그래서 읽기 쉽습니다",
        "👨‍👩‍👧‍👦👩🏽‍🚀🇩🇪🇫🇷❤️‍🔥" * 9,
        "e\u0301te\u0301 nai\u0308ve co\u0302te\u0301 " * 8,
        "नमस्ते दुनिया यह एक लंबा वाक्य है जो कई पंक्तियों में टूट जाएगा।",
        "かﾞきﾞ東京タワーへ行きました。「とても高い！」と彼は言った。" * 3,
    ],
)
@pytest.mark.parametrize("width", [None, 7, 20])
@pytest.mark.parametrize("with_words", [True, False])
def test_every_script_survives_and_no_cluster_is_cut(text, width, with_words):
    output = spoken(text) if with_words else RequestOutput("u", text=text, segments=((0.0, 9.0, text),))
    found = texts(output, max_line_width=width)
    lines = [line for lines in found for line in lines]
    whole = regex.findall(r"\X", "".join(text.split()))
    assert [c for line in lines for c in regex.findall(r"\X", "".join(line.split()))] == whole


def test_a_word_wider_than_a_line_is_a_line_of_its_own():
    found = texts(
        spoken("a Donaudampfschifffahrtsgesellschaft b", rate=0.1), max_line_width=10, max_line_count=3
    )
    assert found == [["a", "Donaudampfschifffahrtsgesellschaft", "b"]]


# Times ----------------------------------------------------------------------------------------


def times(output: RequestOutput, **rules) -> list[tuple[int, int]]:
    return [(cue.start, cue.end) for cue in cues(output, **rules)]


def test_a_short_cue_stays_for_the_least_duration_but_not_beyond_the_recording():
    assert times(timed("Yes.", [WordTiming("Yes.", 5.0, 5.2, 1.0)])) == [(5000, 5833)]
    short = RequestOutput(
        "u", text="Yes.", segments=((0.0, 5.4, "Yes."),), words=(WordTiming("Yes.", 5.0, 5.2, 1.0),)
    )
    assert times(short) == [(5000, 5400)]


def test_short_gaps_are_closed_and_long_ones_kept():
    for pause, end in ((0.0, 1517), (0.4, 1917), (0.499, 2016), (0.5, 1600), (0.9, 1600)):
        output = spoken("One two three four. Five six seven eight.", start=0.4, pauses={4: pause})
        assert times(output)[0] == (400, end)


def test_a_word_longer_than_a_cue_may_last_is_shown_from_its_start():
    assert times(timed("Long", [WordTiming("Long", 1.0, 21.0, 1.0)])) == [(1000, 8000)]
    assert times(timed("Long", [WordTiming("Long", 1.0, 21.0, 1.0)]), max_cue_duration=3) == [(1000, 4000)]


def test_cues_that_begin_together_follow_each_other():
    words = [WordTiming(f"Word{i}.", 1.0, 1.0, 1.0) for i in range(4)]
    found = times(timed(" ".join(w.word for w in words), words), max_line_width=6, max_line_count=1)
    assert found == [(1000, 1001), (1001, 1002), (1002, 1003), (1003, 1836)]


def test_without_word_times_a_segment_is_a_cue():
    output = RequestOutput(
        "u",
        text=f"{LONG} end",
        segments=((2.0, 30.0, LONG), (30.0, 31.0, " "), (31.0, 33.0, "end")),
        duration_s=31.0,
    )
    first, last = cues(output)
    assert (first.start, first.end, last.start, last.end) == (2000, 30000, 31000, 33000)
    assert first.text == LONG and len(first.text_lines) == 4
    assert cues_of(row_of(output), None, CueRules()) == [first, last]


def test_an_empty_transcript_has_no_cues():
    assert cues(timed("", [])) == cues(RequestOutput("u", text=" ")) == []


# Any words ------------------------------------------------------------------------------------

WORDS = st.text("abcdeé,.?!:字かー。가나👍\u0301", min_size=1, max_size=9)
SPANS = st.tuples(st.floats(0, 2), st.floats(0, 9))


@settings(deadline=None, max_examples=150)
@given(
    names=st.lists(WORDS, max_size=25),
    spaces=st.lists(st.booleans(), min_size=25, max_size=25),
    spans=st.lists(SPANS, min_size=25, max_size=25),
    width=st.integers(1, 30),
    count=st.integers(1, 4),
    longest=st.floats(0.5, 8),
    gap=st.floats(0, 1),
)
def test_whatever_the_words_the_limits_hold(names, spaces, spans, width, count, longest, gap):
    clock, words = 0.0, []
    for name, (pause, length) in zip(names, spans, strict=False):
        clock += pause
        words.append(WordTiming(name, clock, clock + length, 0.5))
        clock += length / 2  # words may overlap
    text = "".join(" " * space + name for name, space in zip(names, spaces, strict=False)).strip()
    rules = CueRules(
        max_line_width=width,
        max_line_count=count,
        min_cue_duration=0.4,
        max_cue_duration=longest,
        cue_gap=gap,
    )
    output = timed(text, words)
    found = cues_of(row_of(output), output, rules)

    assert "".join("".join(cue.text.split()) for cue in found) == "".join(text.split())
    for cue in found:
        assert 1 <= cue.end - cue.start <= round(longest * 1000)
        assert len(cue.lines) <= count
        for line, shown in zip(cue.lines, cue.text_lines, strict=True):
            assert shown == shown.strip() and shown
            assert columns(shown) <= width or len(line) == 1
    starts = {round(word.start * 1000) for word in words}
    for before, after in pairwise(found):
        assert before.end <= after.start
        room = after.start - before.start
        assert after.start - before.end >= min(round(gap * 1000), room // 2)
        assert after.start in starts or after.start == before.start + 1


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("max_line_width", 0, "max_line_width: expected a whole number within 1..1000, got 0"),
        ("max_line_width", 2.5, "max_line_width: expected a whole number"),
        ("max_line_count", True, "max_line_count: expected a whole number"),
        ("max_line_count", None, "max_line_count: expected a whole number"),
        ("cue_pause", -1, "cue_pause: expected seconds within 0..3600, got -1"),
        ("cue_gap", float("nan"), "cue_gap: expected seconds"),
        ("close_cue_gap", float("inf"), "close_cue_gap: expected seconds"),
        ("min_cue_duration", 8.0, "max_cue_duration: expected at least min_cue_duration"),
        ("max_cue_duration", 0.5, "max_cue_duration: expected at least min_cue_duration"),
    ],
)
def test_rules_out_of_range_are_refused(field, value, told):
    with pytest.raises(OptionsError) as raised:
        CueRules(**{field: value})
    assert str(raised.value).startswith(told)
