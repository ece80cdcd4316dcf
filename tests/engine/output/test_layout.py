"""Words back in their text."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from helpers.transcripts import row_of, spoken
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.output.layout import Atom, atoms_of, join, timed_pieces, untimed_pieces


def words(*names, start=0.0):
    return [
        {"word": n, "start": start + i, "end": start + i + 0.5, "confidence": 0.5}
        for i, n in enumerate(names)
    ]


def shown(text, *names):
    return [(piece.spaced, piece.text) for piece in timed_pieces(text, words(*names))]


@pytest.mark.parametrize(
    ("text", "names", "pieces"),
    [
        ("one two", ["one", "two"], ["one", " two"]),
        ("你好。AI好", ["你", "好", "AI", "好"], ["你", "好。", "AI", "好"]),
        ('say "hi" - now', ["say", "hi", "now"], ["say", ' "hi" -', " now"]),
        ("(one) two!", ["one", "two"], ["(one)", " two!"]),
        ("- one", ["one"], ["- one"]),
        ("one  \t two\nthree", ["one", "two", "three"], ["one", " two", " three"]),
        ("a a a", ["a", "a", "a"], ["a", " a", " a"]),
        ("one two", ["one", "lost", "two"], ["one", " lost", " two"]),
        ("nothing fits", ["x", "y"], ["x", " y"]),
        ("one", ["one", "", " "], ["one"]),
        ("a\x00b c", ["a\x00b", "c"], ["ab", " c"]),
    ],
)
def test_each_piece_is_a_word_with_the_marks_that_touch_it(text, names, pieces):
    found = timed_pieces(text, words(*names))
    assert [" " * (p.spaced and i > 0) + p.text for i, p in enumerate(found)] == pieces


def test_joined_pieces_are_the_text():
    text = "He said: “你好，世界！” (twice) — and left…"
    pieces = timed_pieces(text, row_of(spoken(text))["words"])
    assert join(pieces) == text


def test_times_are_whole_milliseconds_that_never_go_back():
    odd = [(1.0004, 2.0), (0.5, 0.4), (None, None), (-3.0, 1e300), (1e300, math.inf), (math.nan, 5.0)]
    records = [{"word": "w", "start": a, "end": b, "confidence": None} for a, b in odd]
    pieces = timed_pieces("w w w w w w", records)
    assert [(p.start, p.end) for p in pieces[:3]] == [(1000, 2000), (1000, 1000), (1000, 1000)]
    assert all(p.start <= p.end and p.start <= q.start for p, q in pairwise(pieces))
    assert pieces[-1].end <= 10**12


def test_text_without_word_times_parts_beside_full_width_characters_only():
    pieces = untimed_pieces("don't 你好吗 ok", 10, 20)
    assert [atom.text for atom in atoms_of(pieces, 42)] == ["don't", "你", "好", "吗", "ok"]
    assert {(piece.start, piece.end) for piece in pieces} == {(10, 20)}


def test_korean_words_stay_whole_unless_they_are_wider_than_a_line():
    pieces = untimed_pieces("안녕하세요 여러분", 0, 1)
    assert [atom.text for atom in atoms_of(pieces, 10)] == ["안녕하세요", "여러분"]
    assert [atom.text for atom in atoms_of(pieces, 8)] == ["안", "녕", "하", "세", "요", "여러분"]


def test_a_lone_mark_stays_with_its_word():
    pieces = untimed_pieces("Bonjour ! Ça va ?", 0, 1)
    assert [atom.text for atom in atoms_of(pieces, 42)] == ["Bonjour !", "Ça", "va ?"]


def test_an_atom_lasts_from_its_first_word_to_its_last():
    atom = Atom.of(timed_pieces("你 。", words("你", "。", start=1.0)))
    assert (atom.text, atom.start, atom.end, atom.width, atom.spaced) == ("你 。", 1000, 2500, 5, False)


@settings(deadline=None)
@given(text=st.text(max_size=40), names=st.lists(st.text(max_size=5), max_size=6))
def test_no_word_is_lost_whatever_the_text(text, names):
    pieces = timed_pieces(text, words(*names))
    shown = join(pieces)
    at = 0
    for name in names:
        kept = " ".join(c for c in name.split())
        plain = "".join(c for c in kept if c.isspace() or (c >= " " and not "\x7f" <= c <= "\x9f"))
        for part in plain.split():
            at = shown.index(part, at) + len(part)
