"""Text normalisers for scoring, and which one a language gets.

`english` and `basic` are the two of the Whisper paper (Radford et al. 2022, appendix C), in the
implementation that transformers maintains. transformers expects the spelling table from a model
repository; here it ships beside this module, so scoring needs no network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import TypeAlias

from oasr.registry import Registry

Normalizer: TypeAlias = Callable[[str], str]

NORMALIZERS: Registry[Normalizer] = Registry(
    "text normalizer",
    "oasr.normalizers",
    {name: f"oasr.scoring.normalize:{name}" for name in ("basic", "english", "none")},
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
_CODES = {name: code for code, names in _TWO_LETTER.items() for name in names}

# int() refuses numbers of more than 4300 digits; only a looping transcript has one.
_LONG_NUMBER = re.compile(r"(\d{1000})(?=\d)")


def base_language(language: str | None) -> str | None:
    """The bare code of a language tag or name: `en-US` → `en`, `Chinese` → `zh`, unknown ones unchanged."""
    if language is None or not language.strip():
        return None
    bare = re.split(r"[-_]", language.strip().lower())[0]
    return _CODES.get(bare, bare)


def normalizer_name(language: str | None) -> str:
    """`english` for English, `basic` for every other language and for an unknown one."""
    return "english" if base_language(language) == "en" else "basic"


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
