"""Where text may be cut: grapheme clusters, their widths, and which characters hold on to a neighbour.

Clusters are those of Unicode's annex 29 and widths those of annex 11, both by the package wcwidth:
a family of emoji, a flag or a letter with its accents is one cluster and never cut.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# The gaps in these ranges are what `str.split` takes for white space, which becomes a single space.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Beyond closing brackets and quotes, these never begin a line (W3C, Requirements for Japanese Text
# Layout, classes of characters not starting a line): marks, small kana, repetition and length marks.
_NEVER_FIRST = frozenset(
    "!%),.:;?]}¢°·’”‰℃、。々〻〜ー゛゜ゝゞヽヾ・！％），．：；？］｝､｡ｰﾞﾟ؟،؛۔।॥…‥⋯"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿｧｨｩｪｫｬｭｮｯ"
)
_NEVER_LAST = frozenset("$([{£¥‘“#＄＃￡￥（［｛")
_CLOSERS = "\"'”’»›)]}」』）】》〉〕］｝"
_SENTENCE_ENDS = tuple(".?!…。．？！｡؟۔।॥")
_CLAUSE_ENDS = tuple(",;:、，；：､،؛—–")
# Titles are followed by a capital, so the next word cannot tell that no sentence ended.
_TITLES = frozenset({"mr.", "mrs.", "ms.", "dr.", "prof.", "st.", "messrs.", "gen.", "col.", "rev."})


def plain(text: str) -> str:
    """`text` without what no subtitle can carry: control characters go, half characters become U+FFFD."""
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


def clusters(text: str) -> list[str]:
    """The grapheme clusters of `text`; joined they are `text`."""
    from wcwidth import iter_graphemes

    return list(text) if text.isascii() else list(iter_graphemes(text))


@lru_cache(maxsize=1 << 14)
def columns(text: str) -> int:
    """Columns that `text` takes: 2 for a full-width character or emoji, 0 for a combining mark."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    # It says -1 where a character cannot be shown.
    return max(0, wcswidth(text))


def may_part(before: str, after: str, inside_hangul: bool = False) -> bool:
    """True when a line may end between two texts that stand together without white space.

    That is so beside full-width characters and emoji, unless a cluster would be cut or a mark would
    begin a line or an opening bracket end one. Korean words stay whole unless `inside_hangul`.
    """
    tail = clusters(before)[-1]
    if clusters(tail + after)[0] != tail:
        return False
    last, first = before[-1], after[0]
    if holds_on(first) or last in _NEVER_LAST or unicodedata.category(last) in ("Ps", "Pi"):
        return False
    if _is_hangul(last) and _is_hangul(first):
        return inside_hangul
    return _stands_alone(tail) or _stands_alone(clusters(after)[0])


def holds_on(char: str) -> bool:
    """True for a character that never begins a line: it belongs to what stands before it."""
    return char in _NEVER_FIRST or unicodedata.category(char) in ("Pe", "Pf")


def line_width(text: str) -> int:
    """Columns of a line in the script that `text` is mostly in (see CueRules.max_line_width)."""
    letters = [char for char in text if not char.isspace()]
    wide = [char for char in letters if unicodedata.east_asian_width(char) in "WF"]
    if 2 * len(wide) <= len(letters):
        return 42
    # Chinese and Japanese share ideographs; kana tell them apart.
    return 26 if any("\u3041" <= char <= "\u30ff" for char in wide) else 32


def ends_sentence(text: str, after: str) -> bool:
    """True when a sentence ends with `text`, as far as its marks and the word `after` it can tell."""
    bare = text.rstrip(_CLOSERS)
    if not bare.endswith(_SENTENCE_ENDS) or after[:1].islower():
        return False
    word = bare.rpartition(" ")[2]
    # As in `J. Smith`.
    initial = len(word) == 2 and word[0].isalpha()
    return bare[-1] != "." or not (initial or word.lower() in _TITLES)


def ends_clause(text: str) -> bool:
    """True when `text` ends with a mark inside a sentence, such as a comma."""
    return text.rstrip(_CLOSERS).endswith(_CLAUSE_ENDS)


def _stands_alone(cluster: str) -> bool:
    """True for clusters of scripts that are written without spaces, and emoji."""
    # Half-width katakana take one column, and no more spaces than the full-width ones.
    return columns(cluster) == 2 or "\uff66" <= cluster[0] <= "\uff9d"


def _is_hangul(char: str) -> bool:
    return (
        "\uac00" <= char <= "\ud7ff"
        or "\u1100" <= char <= "\u11ff"
        or "\u3130" <= char <= "\u318f"
        or "\ua960" <= char <= "\ua97f"
    )
