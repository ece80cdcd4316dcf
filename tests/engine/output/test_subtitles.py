"""srt, vtt and tsv, read back by three other programs: srt, webvtt-py and ffmpeg's demuxers."""

from __future__ import annotations

import html
import io
import re
from datetime import timedelta

import pytest
import srt
import webvtt
from helpers.transcripts import row_of, spoken, timed
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.output.cue_rules import CueRules, WriterSettings
from oasr.output.cues import cues_of
from oasr.output.writers import build_writers, render
from oasr.types import RequestOutput, WordTiming

TEXTS = {
    "english": "In being comparatively modern. For although the Chinese took impressions from wood, yes.",
    "arabic": "مرحبا بالعالم، هذا نص عربي طويل لاختبار كسر الأسطر في الترجمة؟ نعم هذا هو.",
    "hebrew, bidi marks": "\u200fשלום\u200f עולם, abc זהו טקסט ארוך כדי לבדוק את שבירת השורות.",
    "chinese": "印刷在现代意义上是相对较新的，因为尽管中国人在几个世纪前就从木刻版上印刷。「你好」他说。",
    "emoji": "so 👨‍👩‍👧‍👦 happy 🇩🇪 e\u0301 ❤️‍🔥 today",
    "markup": "a <b> & c --> d &amp; <00:01.000> {x} <i>e</i> 1 --> 2",
    "numbers": "1984 42 7",
    "newlines": "one\ntwo\r\n\r\nthree\u2028four\x0bfive",
}
EVERY_TEXT = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def show(name: str, output: RequestOutput, rules: CueRules | None = None, highlight: bool = False) -> str:
    writer = build_writers([name], WriterSettings(rules or CueRules(), highlight))[name]
    return render(name, writer, row_of(output), output).decode("utf-8")


def expected(output: RequestOutput, rules: CueRules | None = None) -> list[tuple[int, int, str]]:
    found = cues_of(row_of(output), output, rules or CueRules())
    return [(cue.start, cue.end, "\n".join(cue.text_lines)) for cue in found]


def ms(delta: timedelta) -> int:
    return round(delta.total_seconds() * 1000)


def read_srt(text: str) -> list[tuple[int, int, str]]:
    return [(ms(cue.start), ms(cue.end), cue.content) for cue in srt.parse(text)]


def read_vtt(text: str) -> list[tuple[int, int, str]]:
    cues = webvtt.from_string(text, strict=True)
    return [(clock(cue.start), clock(cue.end), html.unescape(cue.text)) for cue in cues]


def clock(text: str) -> int:
    hours, minutes, seconds, millis = map(int, re.split("[:.]", text))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + millis


def demuxed(name: str, text: str) -> list[tuple[int, int, str]]:
    import av

    with av.open(io.BytesIO(text.encode()), format=name) as container:
        packets = [packet for packet in container.demux(subtitles=0) if packet.size]
        return [(packet.pts, packet.pts + packet.duration, bytes(packet).decode()) for packet in packets]


# Text that survives ---------------------------------------------------------------------------


@EVERY_TEXT
def test_srt_is_read_back_by_others(text):
    output = spoken(text)
    assert read_srt(show("srt", output)) == demuxed("srt", show("srt", output)) == expected(output)


@EVERY_TEXT
def test_vtt_is_read_back_by_others(text):
    output = spoken(text)
    assert read_vtt(show("vtt", output)) == expected(output)
    found = [(start, end, html.unescape(text)) for start, end, text in demuxed("webvtt", show("vtt", output))]
    assert found == expected(output)


@EVERY_TEXT
def test_tsv_has_a_line_a_cue(text):
    output = spoken(text)
    header, *lines = show("tsv", output).split("\n")[:-1]
    assert header == "start\tend\ttext"
    cues = cues_of(row_of(output), output, CueRules())
    assert [line.split("\t") for line in lines] == [[str(c.start), str(c.end), c.text] for c in cues]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.text(max_size=12), st.floats(0, 2), st.floats(0, 5)), max_size=12))
def test_whatever_is_said_can_be_read_back(said):
    clock, words = 0.0, []
    for name, pause, length in said:
        clock += pause
        words.append(WordTiming(name, clock, clock + length, 0.5))
        clock += length
    output = timed(" ".join(word.word for word in words), words)
    for text, read in ((show("srt", output), read_srt), (show("vtt", output), read_vtt)):
        assert read(text) == expected(output)
    assert "-->" not in re.sub(r"^\S+ --> \S+$", "", show("vtt", output), flags=re.M)


# Form -----------------------------------------------------------------------------------------


def test_an_empty_transcript_is_a_valid_empty_file():
    silent = timed("", [])
    assert (show("srt", silent), show("vtt", silent)) == ("", "WEBVTT\n")
    assert show("tsv", silent) == "start\tend\ttext\n"
    assert read_srt(show("srt", silent)) == read_vtt(show("vtt", silent)) == []
    assert read_vtt(show("vtt", silent, highlight=True)) == []


def test_the_form_of_both_to_the_byte():
    output = spoken("Hello there. This is & it.", start=3599.5, rate=0.5)
    assert show("srt", output) == (
        "1\n00:59:59,500 --> 01:00:00,417\nHello there.\n\n2\n01:00:00,500 --> 01:00:02,500\nThis is & it.\n"
    )
    assert show("vtt", output) == (
        "WEBVTT\n\n00:59:59.500 --> 01:00:00.417\nHello there.\n\n"
        "01:00:00.500 --> 01:00:02.500\nThis is &amp; it.\n"
    )


@pytest.mark.parametrize("text", ["00:00:01,000 --> 00:00:02,000", "0:0:1.0 --> 0:0:2.0 x"])
def test_a_line_that_looks_like_times_keeps_its_cue(text):
    output = spoken(text)
    assert demuxed("srt", show("srt", output)) == [(0, 900 + 300 * ("x" in text), text.replace("-->", "→"))]
    assert read_vtt(show("vtt", output)) == expected(output)


def test_hours_may_have_three_digits():
    output = spoken("Hi.", start=360000.0)
    assert "100:00:00,000 --> 100:00:00,833" in show("srt", output)
    assert read_srt(show("srt", output)) == expected(output)
    assert "100:00:00.000 --> " in show("vtt", output)


def test_times_are_those_of_the_recording():
    output = spoken("Hello.", start=12.5)
    writer = build_writers(["srt"])["srt"]
    row = row_of(output, offset=12.5)
    assert render("srt", writer, row, output) == render("srt", writer, row, None)
    assert read_srt(show("srt", output))[0][:2] == (12500, 13333)


def test_without_word_times_each_segment_is_a_cue():
    output = RequestOutput(
        "u", text="one two", segments=((0.0, 29.0, "one"), (29.0, 31.5, "two")), duration_s=31.5
    )
    assert read_srt(show("srt", output)) == [(0, 28917, "one"), (29000, 31500, "two")]
    assert show("tsv", output) == "start\tend\ttext\n0\t28917\tone\n29000\t31500\ttwo\n"
    assert "<" not in show("vtt", output, highlight=True).partition("}")[2].replace("-->", "")


# Highlighted words ----------------------------------------------------------------------------


def test_highlighted_words_have_time_tags_within_their_cue():
    text = show("vtt", spoken("Tom & I see it."), highlight=True)
    assert text == (
        "WEBVTT\n\nSTYLE\n::cue(:future) {\n  color: #9e9e9e;\n}\n\n00:00:00.000 --> 00:00:01.500\n"
        "Tom <00:00:00.300>&amp; <00:00:00.600>I <00:00:00.900>see <00:00:01.200>it.\n"
    )
    assert webvtt.from_string(text).styles[0].text.startswith("::cue(:future)")


@EVERY_TEXT
def test_tags_count_up_within_the_cue_and_leave_the_text_alone(text):
    output = spoken(text)
    marked = show("vtt", output, highlight=True)
    assert read_vtt(marked) == expected(output)
    for cue in webvtt.from_string(marked):
        tags = [clock(tag) for tag in re.findall(r"<([\d:.]+)>", cue.raw_text)]
        assert clock(cue.start) < min(tags, default=10**9) and max(tags, default=0) < clock(cue.end)
        assert tags == sorted(set(tags))
    plain = [text for _, _, text in demuxed("webvtt", marked)]
    assert [html.unescape(re.sub(r"<[\d:.]+>", "", text)) for text in plain] == [
        cue[2] for cue in expected(output)
    ]


def test_srt_has_no_tags_and_stays_as_it_is():
    output = spoken("Tom and I see it.")
    assert show("srt", output, highlight=True) == show("srt", output)
