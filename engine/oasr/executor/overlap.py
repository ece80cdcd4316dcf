"""Two windows that share some seconds → their texts without a word doubled or lost.

Both windows heard the shared speech, but each hears a word badly that its edge cuts. The rule:

1. The last words of the first text and the first words of the second, as many as can be said in the shared
   seconds, are aligned as in sequence assembly: an equal pair (case and punctuation ignored) earns a point,
   an unequal one costs one, a word without a partner half of one. What comes before in the first text and
   after in the second is free, and so is the one word that each edge may have cut.
2. When that scores above zero, the texts meet at the middle one of the equal pairs.
3. Else each word goes to the side of the cut that its middle lies on, when both windows have word times.
4. Else both texts stay as they are: a word may then stand twice, but none is lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from oasr.types import RequestOutput, WordTiming

Decode = Callable[[Sequence[int]], str]
_UNITS_PER_S = 8
"""Nobody says more words, or characters of a script without spaces, in a second for long."""
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNIT = re.compile(f"[{_IDEOGRAPH}]|[^\\s{_IDEOGRAPH}]+")


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word, or a character of a script without spaces: how it compares, and where it ends in the text."""

    form: str
    end: int


def join_overlap(
    before: RequestOutput, after: RequestOutput, cut_s: float, decode: Decode
) -> tuple[RequestOutput, RequestOutput]:
    """Both results without what the other one has said already.

    Args:
        before: result of a window.
        after: result of the next one; the two share what lies around `cut_s`.
        cut_s: where the second takes over, in seconds of the recording.
        decode: token ids → text.
    """
    if not (before.ok and after.ok and before.text and after.text):
        return before, after
    shared_s = before.segments[0][1] - after.segments[0][0]
    # Two more, for the words that lie only partly within these seconds.
    most = math.ceil(_UNITS_PER_S * max(0.0, shared_s)) + 2
    left, right = _units(before.text)[-most:], _units(after.text)[:most]
    meeting = _meeting([unit.form for unit in left], [unit.form for unit in right])
    if meeting is not None:
        end, begin = left[meeting[0]].end, right[meeting[1]].end
    elif before.words is not None and after.words is not None:
        end = max((stop for word, _, stop in _placed(before) if _middle(word) < cut_s), default=0)
        begin = min(
            (start for word, start, _ in _placed(after) if _middle(word) >= cut_s), default=len(after.text)
        )
    else:
        end, begin = len(before.text), 0
    return _head(before, end, cut_s, decode), _tail(after, begin, cut_s, decode)


def _units(text: str) -> list[_Unit]:
    """The units of `text` that have a letter or digit in them."""
    found = (
        ("".join(c for c in match[0].casefold() if c.isalnum()), match.end())
        for match in _UNIT.finditer(text)
    )
    return [_Unit(form, end) for form, end in found if form]


def _meeting(left: Sequence[str], right: Sequence[str]) -> tuple[int, int] | None:
    """Indices of the equal pair in the middle of the best alignment; None when nothing fits."""
    rows, columns = len(left) + 1, len(right) + 1
    # An alignment may begin anywhere in the first text, and behind any number of words of the second.
    scores = [[min(0.0, (1 - j) / 2) for j in range(columns)] for _ in range(rows)]
    for i in range(1, rows):
        for j in range(1, columns):
            pair = scores[i - 1][j - 1] + (1 if left[i - 1] == right[j - 1] else -1)
            scores[i][j] = max(scores[i][j], pair, scores[i - 1][j] - 0.5, scores[i][j - 1] - 0.5)
    # It may end one word before the first text does, whose last one the edge may have cut.
    ends = [(scores[i][j], i, -j) for i in range(max(0, rows - 2), rows) for j in range(columns)]
    best, i, j = max(ends)
    return _middle_pair(scores, left, right, (i, -j)) if best > 0 else None


def _middle_pair(
    scores: list[list[float]], left: Sequence[str], right: Sequence[str], end: tuple[int, int]
) -> tuple[int, int]:
    """The equal pair in the middle of the alignment that ends at `end`."""
    i, j = end
    equal = []
    while i and j and scores[i][j] > min(0.0, (1 - j) / 2):
        same = left[i - 1] == right[j - 1]
        if scores[i][j] == scores[i - 1][j - 1] + (1 if same else -1):
            i, j = i - 1, j - 1
            if same:
                equal.append((i, j))
        elif scores[i][j] == scores[i - 1][j] - 0.5:
            i -= 1
        else:
            j -= 1
    # Never empty: only an equal pair can lift a score above zero.
    return equal[len(equal) // 2]


def _head(output: RequestOutput, end: int, cut_s: float, decode: Decode) -> RequestOutput:
    """`output` up to character `end` of its text."""
    tokens, text = output.tokens[0], output.text or ""
    spelled = decode(tokens).strip()
    # A part that was cut inside its first token begins behind what the token says.
    wanted = spelled[: max(0, len(spelled) - len(text)) + end] if end else ""
    kept = len(tokens)
    # Token by token, since only the text of all that stand before tells where one ends: a character may take
    # several of them, and without the last of these it is another one.
    while kept and decode(tokens[: kept - 1]).strip().startswith(wanted):
        kept -= 1
    words = None if output.words is None else tuple(w for w, start, _ in _placed(output) if start < end)
    return _part(output, (text[:end], slice(0, kept)), (output.segments[0][0], cut_s), words)


def _tail(output: RequestOutput, begin: int, cut_s: float, decode: Decode) -> RequestOutput:
    """`output` from character `begin` of its text on."""
    tokens = output.tokens[0]
    gone = 0
    while gone < len(tokens) and len(decode(tokens[: gone + 1]).strip()) <= begin:
        gone += 1
    words = None if output.words is None else tuple(w for w, start, _ in _placed(output) if start >= begin)
    text = (output.text or "")[begin:]
    return _part(output, (text, slice(gone, len(tokens))), (cut_s, output.segments[-1][1]), words)


def _part(
    output: RequestOutput,
    kept: tuple[str, slice],
    span: tuple[float, float],
    words: tuple[WordTiming, ...] | None,
) -> RequestOutput:
    text, tokens = kept[0].strip(), kept[1]
    return replace(
        output,
        text=text,
        tokens=(output.tokens[0][tokens],),
        scores=output.scores[:1],
        nbest_texts=(text,) if output.nbest_texts else (),
        words=words,
        timestamps=None if output.timestamps is None else output.timestamps[tokens],
        segments=((*span, text),) if text else (),
    )


def _placed(output: RequestOutput) -> list[tuple[WordTiming, int, int]]:
    """Each word with its first character in the text and the one behind its last."""
    found, at = [], 0
    for word in output.words or ():
        start = max(at, (output.text or "").find(word.word, at))
        at = start + len(word.word)
        found.append((word, start, at))
    return found


def _middle(word: WordTiming) -> float:
    return (word.start + word.end) / 2
