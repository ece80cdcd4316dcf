"""Text normalisers for scoring, and which one a language gets.

`english` and `basic` are the two of the Whisper paper (Radford et al. 2022, appendix C), in the
implementation that transformers maintains. transformers expects the spelling table from a model
repository; here it ships beside this module, so scoring needs no network. `chinese` is for Mandarin and
Cantonese in either script; its rules stand at the function.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import TypeAlias

from oasr.registry import Registry

Normalizer: TypeAlias = Callable[[str], str]

NORMALIZERS: Registry[Normalizer] = Registry(
    "text normalizer",
    "oasr.normalizers",
    {name: f"oasr.scoring.normalize:{name}" for name in ("basic", "chinese", "english", "none")},
)

# Written without spaces between words, so a word error rate means nothing (Whisper paper, appendix C,
# for the first five; Cantonese, Khmer, Tibetan and Dzongkha are written the same way). Korean has spaces.
UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "my", "yue", "km", "bo", "dz"})

_TWO_LETTER = {
    "en": ("eng", "english"),
    "zh": ("zho", "chi", "cmn", "chinese", "mandarin"),
    "ja": ("jpn", "japanese"),
    "th": ("tha", "thai"),
    "lo": ("lao",),
    "my": ("mya", "bur", "burmese", "myanmar"),
    "yue": ("cantonese",),
    "km": ("khm", "khmer"),
    "bo": ("bod", "tib", "tibetan"),
    "dz": ("dzo", "dzongkha"),
}
_CHINESE = frozenset({"zh", "yue"})
_CODES = {name: code for code, names in _TWO_LETTER.items() for name in names}

# One ideograph, written apart from its neighbours so that the words of the result are scoring units: the
# blocks of CJK ideographs, their extensions in planes 2 and 3, and the iteration mark and zero among them.
_IDEOGRAPH = re.compile("([\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")
_APOSTROPHE_IN_WORD = re.compile(r"(?<=[^\W\d_])['\u2019](?=[^\W\d_])")
_THOUSANDS_COMMA = re.compile(r"(?<=\d),(?=\d)")
_FULL_STOP = re.compile(r"(?<!\d)\.|\.(?!\d)")

# int() refuses numbers of more than 4300 digits; only a looping transcript has one.
_LONG_NUMBER = re.compile(r"(\d{1000})(?=\d)")


def base_language(language: str | None) -> str | None:
    """The bare code of a language tag or name: `en-US` → `en`, `Chinese` → `zh`, unknown ones unchanged."""
    if language is None or not language.strip():
        return None
    bare = re.split(r"[-_]", language.strip().lower())[0]
    return _CODES.get(bare, bare)


def normalizer_name(language: str | None) -> str:
    """`english` for English, `chinese` for Mandarin and Cantonese, `basic` for all others and for none."""
    code = base_language(language)
    return "english" if code == "en" else "chinese" if code in _CHINESE else "basic"


def metric_name(language: str | None) -> str:
    """`cer` for languages written without spaces between words, else `wer`."""
    return "cer" if base_language(language) in UNSPACED_LANGUAGES else "wer"


def none(text: str) -> str:
    """The text as it is."""
    return text


def basic(text: str) -> str:
    """Whisper's rules for any language: lower case; no brackets' content, marks, symbols or punctuation."""
    return _basic()(text).strip()


def english(text: str) -> str:
    """Whisper's English rules: contractions, titles, numbers, currencies and spellings made alike."""
    return _english()(_LONG_NUMBER.sub(r"\1 ", text)).strip()


def chinese(text: str) -> str:
    """Ideographs one by one, runs of Latin letters and digits whole, all separated by single spaces.

    - Full and half width are one (NFKC: `ＡＢＣ１２３` → `ABC123`); Latin letters become small ones.
    - Digits stay digits: `2020` and `二零二零` differ, as the two are written differently.
    - Punctuation and symbols separate and vanish, except a decimal point (`3.14`); a comma between digits and
      an apostrophe within a word vanish without separating (`1,000` → `1000`, `don't` → `dont`). What
      stands in brackets is kept: in Chinese text it is spoken as a rule.
    - Simplified and traditional characters stay different characters.

    Under `cer` every character counts, the letters of a Latin word one by one; under `wer` an ideograph, a
    Latin word and a number count one each, which is the mixed error rate of code-switched speech.
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    folded = _THOUSANDS_COMMA.sub("", _APOSTROPHE_IN_WORD.sub("", folded))
    folded = _FULL_STOP.sub(" ", folded)
    # Letters, marks and numbers are read out; punctuation, symbols and control characters are not.
    kept = "".join(char if char == "." or unicodedata.category(char)[0] in "LMN" else " " for char in folded)
    return " ".join(_IDEOGRAPH.sub(r" \1 ", kept).split())


def spelling_table() -> dict[str, str]:
    """British → American spellings (1739 pairs) of Whisper's English normaliser."""
    lines = files("oasr.scoring").joinpath("english_spelling.tsv").read_text("utf-8").splitlines()
    pairs = (line.partition("\t") for line in lines if line and not line.startswith("#"))
    return {british: american for british, _, american in pairs}


@lru_cache(maxsize=1)
def _basic() -> Normalizer:
    from transformers.models.whisper.english_normalizer import BasicTextNormalizer

    return BasicTextNormalizer()


@lru_cache(maxsize=1)
def _english() -> Normalizer:
    from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

    return EnglishTextNormalizer(spelling_table())
