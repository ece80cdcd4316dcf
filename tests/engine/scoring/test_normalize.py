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
    for name in ("basic", "english", "none"):
        assert isinstance(NORMALIZERS.get(name)(text), str)


def test_none_changes_nothing():
    assert NORMALIZERS.get("none")(" Ä b\n") == " Ä b\n"


def test_an_unknown_normalizer_lists_the_known_ones():
    with pytest.raises(OptionsError, match="unknown text normalizer 'englisch'; known: basic, english, none"):
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
        ("zh", "zh", "basic", "cer"),
        ("zh-Hant-TW", "zh", "basic", "cer"),
        ("Mandarin", "zh", "basic", "cer"),
        ("yue", "yue", "basic", "cer"),
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
