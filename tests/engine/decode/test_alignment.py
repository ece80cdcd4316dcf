"""Words cut out of pieces and timed by frames: the extension against the rule in slow, plain Python."""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.decode.alignment import (
    FrameClock,
    TokenAlignment,
    emission_fields,
    mean_posterior,
    span_fields,
)
from oasr.native import extension
from oasr.types import Request, WordTiming

# Scripts without spaces, by the Unicode blocks they stand in; a character of theirs is a word.
SPACELESS = (
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"  # Hangul (the rest is among the CJK blocks)
    "\u2e80-\u2fff\u3001-\u3098\u309b-\u4dbf"  # CJK from the radicals to extension A, kana among them
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # ideographs
    "\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff"  # Tangut, more kana, Nushu
    "\ufe30-\ufe6f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9d\uffe0-\uffe6"  # other widths
)
MARKS = "\u3099\u309a\ufe00-\ufe0f\uff9e\uff9f\U000e0100-\U000e01ef"
WORD = re.compile(f"[{SPACELESS}][{MARKS}]*|[^\\s{SPACELESS}]+")  # \s is str.isspace


def posterior(log_prob: float) -> float:
    return 0.0 if math.isnan(log_prob) else math.exp(min(log_prob, 0.0))


def mean(values: list[float]) -> float:
    total = 0.0
    for value in values:  # not sum(), which compensates on some interpreters
        total += value
    return total / len(values)


def oracle(pieces, spans, log_probs, frame_s, offset, duration):
    """(words, token times, confidence), token by token and character by character."""
    frames = max(1, math.floor(duration / frame_s + 1e-6))
    times, start, end = [], 0, 0
    for first, last in spans:
        start = min(max(first, start), frames - 1)
        end = min(max(last, end, start + 1), frames)
        times.append((offset + start * frame_s, offset + (duration if end == frames else end * frame_s)))
    places = [sum(map(len, pieces[:i])) for i in range(len(pieces))]
    # A piece without a character stands at the one that follows it.
    reaches = [(at, at + max(1, len(piece))) for at, piece in zip(places, pieces, strict=True)]
    words = []
    for match in WORD.finditer("".join(pieces)):
        touching = [i for i, (a, b) in enumerate(reaches) if a < match.end() and b > match.start()]
        begins, ends = min(times[i][0] for i in touching), max(times[i][1] for i in touching)
        words.append([match[0], begins, ends, mean([posterior(log_probs[i]) for i in touching])])
    for word, following in reversed(list(pairwise(words))):
        word[2] = min(word[2], following[1] if following[1] > word[1] else following[2])
    confidence = mean([posterior(x) for x in log_probs]) if pieces else 0.0
    return [tuple(word) for word in words], times, confidence


def emission_spans(frames):
    return [(min(frames[i - 1] + 1, t) if i else t, t + 1) for i, t in enumerate(frames)]


CHARACTERS = st.one_of(
    st.sampled_from(" \t\n\u3000\x1c\x85abc.,'"),
    st.sampled_from("我是かガｶﾞﾞが한글々ー、。葛\U000e0100\ufe0f\u309a\U00020bb7\U0001f600"),
    st.characters(exclude_categories=()),  # all of Unicode, lone surrogates too
)
PIECES = st.lists(st.text(CHARACTERS, max_size=4), max_size=12)
LOG_PROBS = st.one_of(st.floats(-20, 0.5), st.sampled_from([math.nan, -math.inf, math.inf, 0.0]))
SECONDS = st.sampled_from([0.01, 0.02, 0.04, 0.06, 0.08])


@settings(max_examples=250, deadline=None)
@given(data=st.data(), pieces=PIECES, frame_s=SECONDS, offset=st.floats(0, 1e4), duration=st.floats(0.001, 2))
def test_words_equal_the_oracle(data, pieces, frame_s, offset, duration) -> None:
    frame = st.integers(-3, 60)
    spans = data.draw(st.lists(st.tuples(frame, frame), min_size=len(pieces), max_size=len(pieces)))
    log_probs = data.draw(st.lists(LOG_PROBS, min_size=len(pieces), max_size=len(pieces)))
    table = np.array(spans, dtype=np.int64).reshape(-1, 2)
    got = extension().alignment.time_spans(pieces, table, log_probs, frame_s, offset, duration)
    words, times, confidence = oracle(pieces, spans, log_probs, frame_s, offset, duration)
    assert got == (words, times, confidence)
    assert mean_posterior(log_probs) == (confidence if pieces else None)
    frames = [first for first, _ in spans]
    emitted = extension().alignment.time_emissions(pieces, frames, log_probs, frame_s, offset, duration)
    assert emitted == oracle(pieces, emission_spans(frames), log_probs, frame_s, offset, duration)
    check_promises("".join(pieces), got, offset, duration)


def check_promises(text: str, result, offset: float, duration: float) -> None:
    """What holds whatever the frames are."""
    words, times, confidence = result
    at, before = 0, (offset, offset)
    for word, start, end, sureness in words:
        at = text.index(word, at) + len(word)  # literal substrings, in order
        assert offset <= start < end <= offset + duration and 0 <= sureness <= 1
        assert before[0] <= start and before[1] <= end
        before = (start, end)
    assert "".join(words_only(words)) == "".join(text.split())
    assert all(offset <= a < b <= offset + duration for a, b in times) and 0 <= confidence <= 1


def words_only(words) -> list[str]:
    return [word[0] for word in words]


def words_of(text: str) -> list[str]:
    return words_only(extension().alignment.time_spans([text], [[0, 1]], [0.0], 0.02, 0.0, 1.0)[0])


def test_every_character_of_unicode_is_classified_as_the_oracle_does() -> None:
    for plane in range(17):
        # Planes without a character of any kind are sampled.
        step = 1 if plane in (0, 1, 2, 3, 14) else 89
        characters = map(chr, range(plane << 16, plane + 1 << 16, step))
        text = " ".join(f"a{c}b我{c}" for c in characters)
        assert words_of(text) == WORD.findall(text)
    assert sum(map(str.isspace, map(chr, range(sys.maxunicode + 1)))) == 29


def test_letters_of_spaceless_scripts_are_words_by_their_unicode_names() -> None:
    """The table of ranges itself, against the names of the characters that this Python knows."""
    begins = (
        "CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA LETTER", "KATAKANA LETTER",
        "HANGUL SYLLABLE", "HANGUL LETTER", "HANGUL CHOSEONG", "HALFWIDTH KATAKANA LETTER", "BOPOMOFO LETTER",
        "IDEOGRAPHIC COMMA", "KATAKANA-HIRAGANA PROLONGED",
    )  # fmt: skip
    other = ("LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "THAI", "DEVANAGARI", "FULLWIDTH DIGIT")
    for code in range(sys.maxunicode + 1):
        name = unicodedata.name(chr(code), "")
        if name.startswith(begins):
            assert words_of(f"{chr(code)}x") == [chr(code), "x"], name
        elif name.startswith(other) and not chr(code).isspace():
            assert words_of(f"{chr(code)}x") == [f"{chr(code)}x"], name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" Hello, world. It's 5%!", ["Hello,", "world.", "It's", "5%!"]),
        ("你好，世界。OK吗", ["你", "好", "，", "世", "界", "。", "OK", "吗"]),
        ("ＡＢ１２！「はい」", ["ＡＢ１２", "！", "「", "は", "い", "」"]),
        ("カ゛ガが ｶﾞ", ["カ", "゛", "ガ", "が", "ｶﾞ"]),
        ("한국어 문장", ["한", "국", "어", "문", "장"]),
        ("שלום עולם 👨‍👩‍👧", ["שלום", "עולם", "👨‍👩‍👧"]),
        (" \n\u3000", []),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_bytes_of_one_character_count_to_it() -> None:
    """Byte-level pieces: the first two bytes of a character have no text of their own yet."""
    pieces, frames = [" a", "", "", "你", "b"], [2, 10, 11, 12, 20]
    words, times, _ = extension().alignment.time_emissions(
        pieces, frames, [0.0, math.log(0.5), 0.0, 0.0, 0.0], 0.02, 0.0, 1.0
    )
    assert [(w, round(s, 2), round(e, 2)) for w, s, e, _ in words] == [
        ("a", 0.04, 0.06), ("你", 0.06, 0.26), ("b", 0.26, 0.42),
    ]  # fmt: skip
    assert words[1][3] == mean([0.5, 1.0, 1.0]) and len(times) == 5


def test_words_of_one_token_share_its_time_and_the_next_one_cuts_it() -> None:
    words, _, _ = extension().alignment.time_spans(
        ["我们", "好"], [[0, 5], [4, 9]], [0.0, 0.0], 0.02, 0.0, 1.0
    )
    assert [(w, s, e) for w, s, e, _ in words] == [("我", 0.0, 0.08), ("们", 0.0, 0.08), ("好", 0.08, 0.18)]


def test_the_last_frame_ends_with_the_recording() -> None:
    """1.013 s are 50 frames of 20 ms and a rest, which is no frame of its own."""
    words, _, _ = extension().alignment.time_spans([" a", " b"], [[3, 9], [50, 51]], [0, 0], 0.02, 5.0, 1.013)
    assert words[1][1:3] == (5.0 + 49 * 0.02, 5.0 + 1.013)
    (short,), _, _ = extension().alignment.time_spans(["x"], [[7, 9]], [0], 0.02, 0.0, 0.004)
    assert short[1:3] == (0.0, 0.004)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], [[0, 1], [1, 2]], [0.0], 0.02, 0.0, 1.0), r"spans: expected .*\(1, 2\), got shape \(2,2,\)"),
        ((["a"], [0], [0.0], 0.02, 0.0, 1.0), "spans: expected"),
        ((["a"], [[0, 1]], [], 0.02, 0.0, 1.0), r"log_probs: expected one a piece: \(1,\)"),
        (([b"a"], [[0, 1]], [0.0], 0.02, 0.0, 1.0), "pieces: expected strings, got bytes"),
        ((["a"], [[0, 1]], [0.0], 0.0, 0.0, 1.0), "seconds_per_frame: expected seconds > 0"),
        ((["a"], [[0, 1]], [0.0], 0.02, math.inf, 1.0), "offset_s"),
        ((["a"], [[0, 1]], [0.0], 0.02, 0.0, math.nan), "duration_s"),
    ],
)
def test_what_is_refused(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extension().alignment.time_spans(*arguments)


def test_emission_frames_are_one_a_piece() -> None:
    with pytest.raises(ValueError, match="frames: expected one a piece"):
        extension().alignment.time_emissions(["a"], [1, 2], [0.0], 0.02, 0.0, 1.0)


# The Python face -----------------------------------------------------------------------------------


def request_of(seconds: float, start_s: float = 0.0) -> Request:
    return Request("u", np.zeros(round(seconds * 16000), np.float32), 16000, start_s=start_s)


def test_fields_of_a_hypothesis() -> None:
    clock, request = FrameClock(0.04), request_of(2.0, start_s=60.0)
    pieces, log_probs = [" so", "", "è"], np.log([0.5, 1.0, 0.75])
    fields = emission_fields(pieces, np.array([3, 9, 10]), log_probs, clock, request)
    assert fields["words"] == (WordTiming("soè", 60.12, 60.44, mean([0.5, 1.0, 0.75])),)
    assert fields["timestamps"] == ((60.12, 60.16), (60.16, 60.4), (60.4, 60.44))
    assert fields["confidence"] == fields["words"][0].confidence
    spans = TokenAlignment([[3, 4], [4, 10], [10, 11]], log_probs)
    assert span_fields(pieces, spans, clock, request) == fields
    nothing = {"words": (), "timestamps": (), "confidence": None}
    assert emission_fields([], [], [], clock, request) == nothing


@pytest.mark.parametrize(
    ("geometry", "seconds"),
    [
        ((10.0, 1, 4), 0.04), ((10.0, 1, 2), 0.02), ((10.0, 6, 1), 0.06), ((10.0, 1, 8), 0.08),
        ((10.0, 1, None), None), ((0.0, 1, 4), None), ((math.nan, 1, 4), None), ((10.0, 0, 4), None),
    ],
)  # fmt: skip
def test_the_clock_multiplies_three_declared_numbers_or_says_nothing(geometry, seconds) -> None:
    names = ("frame_shift_ms", "lfr_n", "subsampling_rate")
    clock = FrameClock.of(SimpleNamespace(**dict(zip(names, geometry, strict=True))))
    assert (clock and clock.seconds_per_frame) == (seconds and pytest.approx(seconds))
