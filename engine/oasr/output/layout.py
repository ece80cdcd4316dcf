"""Text and timed words → pieces (a word with the marks around it) → atoms (what no line may cut)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oasr.output.graphemes import clusters, columns, holds_on, may_part, plain
from oasr.output.segments import MAX_SECONDS
from oasr.types import finite


@dataclass(frozen=True, slots=True)
class Piece:
    """One word as it stands in the text, with the marks around it.

    Attributes:
        text: a part of the text without white space at its ends.
        spaced: white space stands before it.
        start, end: milliseconds of the original recording.
        confidence: the word's own; None where it has none, and for text without timed words.
    """

    text: str
    spaced: bool
    start: int
    end: int
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Atom:
    """Pieces that stay on one line.

    Attributes:
        pieces: one at least.
        text: the pieces as they stand in the text.
        width: columns of the text.
    """

    pieces: tuple[Piece, ...]
    text: str
    width: int

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Atom:
        """The atom of `pieces`."""
        text = join(pieces)
        return cls(tuple(pieces), text, columns(text))

    @property
    def spaced(self) -> bool:
        """White space stands before it."""
        return self.pieces[0].spaced

    @property
    def start(self) -> int:
        """When its first word begins, in milliseconds."""
        return self.pieces[0].start

    @property
    def end(self) -> int:
        """When its last word ends, in milliseconds."""
        return self.pieces[-1].end


def join(parts: Iterable[Piece | Atom]) -> str:
    """The text of neighbouring parts: a space where white space stood, nothing else between them."""
    return "".join(f" {part.text}" if part.spaced and i else part.text for i, part in enumerate(parts))


def timed_pieces(text: str, words: Sequence[Mapping[str, Any]]) -> list[Piece]:
    """Cut `text` so that each piece holds one of `words` (records of a result row), in order.

    What stands between two words (marks that belong to none) goes to the word that it touches, to the
    first of two. A word that the text does not hold becomes a piece of its own. Times become whole
    milliseconds that never go back.
    """
    pieces, clock = [], 0
    for piece, spaced, word in _placed(plain(text), words):
        clock = start = max(clock, _milliseconds(word["start"], clock))
        end = max(start, _milliseconds(word["end"], start))
        pieces.append(Piece(" ".join(piece.split()), spaced, start, end, finite(word.get("confidence"))))
    return pieces


def untimed_pieces(text: str, start: int, end: int) -> list[Piece]:
    """`text` in pieces that may part, all of which last from `start` to `end` milliseconds."""
    pieces = []
    for token in plain(text).split():
        # One cluster a piece: `atoms_of` puts together again what no line may part.
        parts = clusters(token) if not token.isascii() else [token]
        pieces += [Piece(part, i == 0, start, end) for i, part in enumerate(parts)]
    return pieces


def atoms_of(pieces: Sequence[Piece], width: int) -> list[Atom]:
    """Join the pieces that no line may part; a Korean word is parted only when it is wider than `width`."""
    atoms: list[Atom] = []
    for group in _grouped(pieces, inside_hangul=False):
        atom = Atom.of(group)
        if atom.width > width:
            atoms += map(Atom.of, _grouped(group, inside_hangul=True))
        else:
            atoms.append(atom)
    return atoms


def _placed(text: str, words: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool, Mapping[str, Any]]]:
    """(part of the text, does white space stand before it, word) of each word that is not blank."""
    parts: list[str] = []
    spaces: list[bool] = []
    named = [(name, word) for word in words if (name := plain(str(word["word"])).strip())]
    at = 0
    for name, _ in named:
        # Words stand in the text in order, so that the first one found behind the last is the right one.
        begin = text.find(name, at)
        tail, spaced, lead = _share_out(text[at:begin]) if begin >= 0 else ("", True, "")
        if parts:
            parts[-1] += tail
        else:
            lead = f"{tail} {lead}" if spaced else tail + lead
        parts.append(lead + name)
        spaces.append(spaced)
        at = begin + len(name) if begin >= 0 else at
    if at:  # no word was found in the text: then the words are all there is
        parts[-1] += text[at:]
    return [(part, spaced, word) for part, spaced, (_, word) in zip(parts, spaces, named, strict=True)]


def _grouped(pieces: Sequence[Piece], inside_hangul: bool) -> Iterator[list[Piece]]:
    group: list[Piece] = []
    for piece in pieces:
        if group and _parts(group[-1], piece, inside_hangul):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _parts(before: Piece, after: Piece, inside_hangul: bool) -> bool:
    if after.spaced:
        # A lone mark stays with its word, as in French, which sets `!` and `?` off by a space.
        return not all(holds_on(char) for char in after.text)
    return may_part(before.text, after.text, inside_hangul)


def _share_out(gap: str) -> tuple[str, bool, str]:
    """What stands between two words → (the first one's part, is there white space, the second one's part)."""
    head = gap.rstrip()
    if head != gap or not gap:
        return head, head != gap, ""
    rest = gap.split()[-1]
    first = gap[: len(gap) - len(rest)]
    # An opening quote stands directly before the second word; a closing one, or a dash, does not.
    return (first.rstrip(), True, rest) if first else (gap, False, "")


def _milliseconds(seconds: object, default: int) -> int:
    value = finite(seconds)
    return default if value is None else round(1000 * min(max(value, 0.0), MAX_SECONDS))
