from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oasr.errors import OptionsError
from oasr.scoring.normalize import (
    NORMALIZERS,
    base_language,
    basic,
    chinese,
    english,
    metric_name,
    normalizer_name,
    spelling_table,
)

VOCABULARY = """one two oh zero twenty hundred million point and a half double triple minus dollars cents per
cent percent first thirds $ £5 ¢7 1 3.5 . 1960s mr st colour won't 's ٣ ½ ² ∞ [x] (y) <z>"""
WORDS = st.sampled_from(VOCABULARY.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Mr. Colour's favourite GREY theatre won't open",
            "mister color is favorite gray theater will not open",
        ),
        ("twenty-five dollars and 7 cents", "$25.07"),
        ("two and a half million", "2500000"),
        ("[laughter] um, (sighs) well", "well"),
        ("", ""),
        ("I've  got\t1,234 apples.", "i have got 1234 apples"),
        ("one oh one", "101"),
        ("café", "cafe"),
    ],
)
def test_english_rules(text, expected):
    assert " ".join(english(text).split()) == expected


def test_the_spelling_table_is_whole_and_used():
    table = spelling_table()
    assert len(table) == 1739
    assert (table["accessorise"], table["yodelled"], table["grey"]) == ("accessorize", "yodeled", "gray")
    assert not [key for key in table if key.startswith("#") or key != key.strip() or not table[key]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Größe, ÄÖÜ!", "größe äöü"),
        ("真っ昼間、なのに。", "真っ昼間 なのに"),
        ("Won't colour", "won t colour"),
        ("(x) y", "y"),
    ],
)
def test_basic_rules(text, expected):
    assert basic(text) == expected


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())) | st.lists(WORDS, max_size=12).map(" ".join))
@example("1" * 5000)
@example("one " * 5000 + "million")
@example(f"${'9' * 6000}.{'9' * 6000} million")
def test_no_text_breaks_a_normalizer(text):
    for name in NORMALIZERS.names():
        assert isinstance(NORMALIZERS.get(name)(text), str)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天天气很好。", "今 天 天 气 很 好"),
        ("我用ｉＰｈｏｎｅ　１５拍照！", "我 用 iphone 15 拍 照"),
        ("二零二零年 2020年", "二 零 二 零 年 2020 年"),
        ("１，０００元，3.14％", "1000 元 3.14"),
        ("I don't know这件事", "i dont know 这 件 事"),
        ("（笑）[音乐]好", "笑 音 乐 好"),
        ("www.baidu.com 第1. 第2.", "www baidu com 第 1 第 2"),
        ("〇々𠮷\uf900", "〇 々 𠮷 \u8c48"),
        ("體 体", "體 体"),
        ("ﾊﾟ パ 한국", "パ パ 한국"),
        ("。，！", ""),
        ("", ""),
    ],
)
def test_chinese_rules(text, expected):
    assert chinese(text) == expected


def wide(text: str) -> str:
    """ASCII in its full-width forms."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else "\u3000" if c == " " else c for c in text)


ASCII_AND_CHINESE = st.text("abzAZ019 .,!'%-（。、今天气𠮷", max_size=20)


@settings(deadline=None)
@given(ASCII_AND_CHINESE)
def test_chinese_knows_no_width_and_no_second_pass(text):
    assert chinese(wide(text)) == chinese(text)
    assert chinese(chinese(text)) == chinese(text)


@settings(deadline=None)
@given(ASCII_AND_CHINESE)
def test_chinese_keeps_every_letter_digit_and_ideograph_in_order(text):
    kept = [c for c in text.lower() if c.isalnum()]
    assert [c for c in chinese(text) if c not in " ."] == kept
    assert all(len(word) == 1 or word.isascii() for word in chinese(text).split())


def test_none_changes_nothing():
    assert NORMALIZERS.get("none")(" Ä b\n") == " Ä b\n"


def test_an_unknown_normalizer_lists_the_known_ones():
    with pytest.raises(
        OptionsError, match="unknown text normalizer 'englisch'; known: basic, chinese, english, none"
    ):
        NORMALIZERS.get("englisch")


@pytest.mark.parametrize(
    ("language", "code", "normalizer", "metric"),
    [
        ("en", "en", "english", "wer"),
        ("en-US", "en", "english", "wer"),
        ("EN_gb", "en", "english", "wer"),
        ("English", "en", "english", "wer"),
        ("de", "de", "basic", "wer"),
        ("ko", "ko", "basic", "wer"),
        ("zh", "zh", "chinese", "cer"),
        ("zh-Hant-TW", "zh", "chinese", "cer"),
        ("Mandarin", "zh", "chinese", "cer"),
        ("yue", "yue", "chinese", "cer"),
        ("ja", "ja", "basic", "cer"),
        ("th", "th", "basic", "cer"),
        ("my", "my", "basic", "cer"),
        ("lo", "lo", "basic", "cer"),
        ("km", "km", "basic", "cer"),
        (None, None, "basic", "wer"),
        (" ", None, "basic", "wer"),
        ("tlh", "tlh", "basic", "wer"),
    ],
)
def test_the_language_chooses_normalizer_and_metric(language, code, normalizer, metric):
    assert base_language(language) == code
    assert (normalizer_name(language), metric_name(language)) == (normalizer, metric)


def test_importing_scoring_loads_no_heavy_package():
    code = (
        "import sys, oasr.scoring.wer, oasr.scoring.normalize\n"
        "print([m for m in ('transformers', 'jiwer', 'torch', 'rapidfuzz') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
