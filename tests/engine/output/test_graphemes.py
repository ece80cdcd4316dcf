"""Where text may be cut, against `regex`, which knows grapheme clusters too."""

from __future__ import annotations

import pytest
import regex
from oasr.output.graphemes import (
    clusters,
    columns,
    ends_clause,
    ends_sentence,
    line_width,
    may_part,
    plain,
)

FAMILY, FLAG, HEART = "👨‍👩‍👧‍👦", "🇩🇪", "❤️‍🔥"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        f"a{FAMILY}b{FLAG}{FLAG}",
        "e\u0301a\u0308\u0304",
        "한국어",
        "각",
        "กำลัง",
        HEART,
        "字か\u3099",
    ],
)
def test_clusters_are_those_of_unicode(text):
    assert clusters(text) == regex.findall(r"\X", text)


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("字", 2), ("ｱ", 1), ("Ａ", 2), (FAMILY, 2), (FLAG, 2), ("e\u0301", 1),
     ("\u200f", 0), ("한국", 4), ("مرحبا", 5), ("ひらがな", 8)],
)  # fmt: skip
def test_full_width_characters_take_two_columns_and_marks_none(text, width):
    assert columns(text) == width


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        ("你", "好", True),
        ("か", "な", True),
        ("AI", "模", True),
        ("字", "AI", True),
        ("ok", FAMILY, True),
        (FAMILY, FLAG, True),
        ("do", "n't", False),
        ("你", "。", False),
        ("「", "你", False),
        ("好", "」", False),
        ("“", "你", False),
        ("ラ", "ー", False),
        ("キ", "ャ", False),
        ("か", "\u3099", False),
        ("👨\u200d", "👩", False),
        ("🇩", "🇪", False),
        (FLAG, "🇫🇷", True),
        ("한", "국", False),
        ("한", "字", True),
    ],
)
def test_a_line_ends_beside_full_width_characters_but_not_within_a_cluster_or_before_a_mark(
    before, after, may
):
    assert may_part(before, after) is may


def test_korean_words_part_only_when_told():
    assert may_part("한", "국", inside_hangul=True) and not may_part("국", "!", inside_hangul=True)


@pytest.mark.parametrize(
    ("text", "after", "ends"),
    [
        ("end.", "Next", True), ("end.”", "Next", True), ("end?)", "", True), ("完。", "下", True),
        ("什么？」", "他", True), ("نعم؟", "لا", True), ("है।", "वह", True), ("wait…", "Next", True),
        ("end", "Next", False), ("end,", "Next", False), ("Mr.", "Smith", False), ("J.", "Smith", False),
        ("etc.", "and", False), ("“What?”", "he", False), ("...", "Next", True), ("”", "Next", False),
    ],
)  # fmt: skip
def test_ends_of_sentences(text, after, ends):
    assert ends_sentence(text, after) is ends


@pytest.mark.parametrize(
    ("text", "ends"), [("a,", True), ("a”,", True), ("b;”", True), ("你，", True), ("a", False)]
)
def test_ends_of_clauses(text, ends):
    assert ends_clause(text) is ends


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 42), ("hello 世界", 42), ("你好，世界", 32), ("안녕 하세요", 32), ("東京へ行く", 26), ("ｱｲｳ", 42),
     ("AI模型很好", 32)],
)  # fmt: skip
def test_the_width_of_a_line_goes_by_the_script(text, width):
    assert line_width(text) == width


def test_control_characters_go_and_half_characters_are_replaced():
    assert plain("a\x00\x1b[0m\x7fb\x9f") == "a[0mb" and plain("\ud83d x") == "\ufffd x"
    assert plain("a\tb\r\nc\u2028d") == "a\tb\r\nc\u2028d"  # white space is for others to treat
