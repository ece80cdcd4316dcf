"""Timed words → subtitle cues by the rules of `CueRules`; without timed words, a cue a segment.

A cue holds one sentence where that is possible. The words between two pauses are cut where the sum of
these costs is least, within the limits of width, lines and duration:

    1       for every cue
    3, 1    for a cue that ends inside a sentence, at a clause mark; less, the longer the pause there
    2       for every end of a sentence inside a cue
    4       for a cue that cannot stay for the least duration; less, the closer it comes
    0 to 1  for the square of its share of the room, so that parts of one sentence are of like length
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oasr.output.cue_rules import CueRules
from oasr.output.graphemes import ends_clause, ends_sentence, line_width
from oasr.output.layout import Atom, atoms_of, join, timed_pieces, untimed_pieces
from oasr.output.partition import cheapest_groups
from oasr.output.segments import segments_of
from oasr.types import RequestOutput

_MID_SENTENCE, _AT_CLAUSE, _SENTENCE_INSIDE, _TOO_SHORT = 3.0, 1.0, 2.0, 4.0


@dataclass(frozen=True, slots=True)
class Cue:
    """One subtitle: milliseconds of the original recording, end > start, and its lines."""

    start: int
    end: int
    lines: tuple[tuple[Atom, ...], ...]

    @property
    def text_lines(self) -> list[str]:
        """The lines as text; never empty, and none of them blank."""
        return [join(line) for line in self.lines]

    @property
    def text(self) -> str:
        """The whole cue on one line."""
        return join([atom for line in self.lines for atom in line])


def cues_of(row: Mapping[str, Any], output: RequestOutput | None, rules: CueRules) -> list[Cue]:
    """The cues of one result row, in order, never overlapping.

    Each is made from words when the row has them. Else each segment is one cue, broken into as many
    lines as it needs: how its words spread over its time is unknown.
    """
    text = str(row.get("pred_text") or "")
    width = rules.max_line_width or line_width(text)
    segments = segments_of(row, output)
    closing = _ms(segments[-1].end) if segments else math.inf
    if row.get("words"):
        builder = _Builder(atoms_of(timed_pieces(text, row["words"]), width), rules, width)
        return _timed(builder.groups(), rules, width, _ms(rules.max_cue_duration), closing)
    pieces = [untimed_pieces(segment.text, _ms(segment.start), _ms(segment.end)) for segment in segments]
    groups = [atoms_of(one, width) for one in pieces if one]
    return _timed(groups, rules, width, math.inf, closing)


class _Builder:
    """Cuts the atoms of one transcript into groups, each a cue."""

    def __init__(self, atoms: Sequence[Atom], rules: CueRules, width: int) -> None:
        self.atoms, self.width, self.lines = atoms, width, rules.max_line_count
        self.longest, self.shortest = _ms(rules.max_cue_duration), _ms(rules.min_cue_duration)
        self.starts, self.ends = [atom.start for atom in atoms], [atom.end for atom in atoms]
        # For each atom: when a cue that ends behind it must be gone, and the silence there.
        following = [*atoms, None][1:]
        self.leave = [atom.start - _ms(rules.cue_gap) if atom else math.inf for atom in following]
        self.silence = [
            atom.start - end if atom else math.inf for atom, end in zip(following, self.ends, strict=True)
        ]
        # Not 0, which the flag may say: `_ending` divides by it.
        self.pause = max(1, _ms(rules.cue_pause))
        self.sentence_ends = [
            ends_sentence(atom.text, after.text if after else "")
            for atom, after in zip(atoms, following, strict=True)
        ]
        self.endings = [self._ending(at) for at in range(len(atoms))]

    def _ending(self, at: int) -> float:
        """What it costs that a cue ends behind the atom `at`."""
        if self.sentence_ends[at] or self.silence[at] >= self.pause:
            return 0.0
        cost = _AT_CLAUSE if ends_clause(self.atoms[at].text) else _MID_SENTENCE
        return cost * (1 - max(0, self.silence[at]) / self.pause)

    def groups(self) -> list[Sequence[Atom]]:
        """The atoms of each cue."""
        groups, begin = [], 0
        for end, silence in enumerate(self.silence, 1):
            if silence >= self.pause:
                cuts = cheapest_groups(end - begin, self._costs(begin, end))
                groups += [self.atoms[begin + first : begin + last] for first, last in cuts]
                begin = end
        return groups

    def _costs(self, start: int, stop: int) -> Callable[[int], Iterator[float]]:
        """The costs of groups among the atoms `start` to `stop`, which no long pause divides."""
        room = self.width * self.lines

        def costs(begin: int) -> Iterator[float]:
            begin += start
            shown_from = self.starts[begin]
            lines, used, total, inside = 1, 0, 0, 0
            for end in range(begin, stop):
                atom = self.atoms[end]
                # Lines are filled to the brim here, which takes the fewest; `break_lines` evens them out.
                step = atom.width + (atom.spaced and end > begin)
                used, total = used + step, total + step
                if used > self.width and end > begin:
                    lines, used = lines + 1, atom.width
                # A single atom always goes, however wide or long: else there would be no way to cut at all.
                if end > begin and (lines > self.lines or self.ends[end] - shown_from > self.longest):
                    return
                cost = 1 + (total / room) ** 2 + _SENTENCE_INSIDE * inside + self.endings[end]
                left = max(0, self.leave[end] - shown_from)
                if left < self.shortest:
                    cost += _TOO_SHORT * (1 - left / self.shortest)
                yield cost
                inside += self.sentence_ends[end]

        return costs


def break_lines(atoms: Sequence[Atom], width: int) -> tuple[tuple[Atom, ...], ...]:
    """As few lines as `width` columns permit, of like lengths, rather after a mark; a wider atom is a line.

    Of two ways that are equally good the one with the shorter first line is taken, which covers less
    of the picture.
    """
    if sum(atom.width + atom.spaced for atom in atoms) - atoms[0].spaced <= width:
        return (tuple(atoms),)
    # No shape of lines is worth one more of them; a mark is worth a little unevenness.
    a_line, a_mark = 4.0 * width * width, width * width / 6

    def costs(begin: int) -> Iterator[float]:
        used = 0
        for end in range(begin, len(atoms)):
            used += atoms[end].width + (atoms[end].spaced and end > begin)
            if used > width and end > begin:
                return
            text = atoms[end].text
            yield a_line + used * used - a_mark * (ends_clause(text) or ends_sentence(text, ""))

    return tuple(tuple(atoms[begin:end]) for begin, end in cheapest_groups(len(atoms), costs))


def _timed(
    groups: Sequence[Sequence[Atom]], rules: CueRules, width: int, longest: float, closing: float
) -> list[Cue]:
    """Groups of atoms → cues: each on the screen long enough, none while another one is.

    Args:
        groups: the atoms of each cue.
        rules: for the least duration and the gaps.
        width: columns of a line.
        longest: most milliseconds of a cue.
        closing: when the recording ends; no cue is drawn out beyond it.
    """
    gap, close = _ms(rules.cue_gap), _ms(max(rules.close_cue_gap, rules.cue_gap))
    cues: list[Cue] = []
    starts = _rising([group[0].start for group in groups])
    for group, start, following in zip(groups, starts, [*starts, math.inf][1:], strict=True):
        spoken = group[-1].end
        # Words may end after the recording by a rounding; what is drawn out may not.
        end = max(spoken, min(start + _ms(rules.min_cue_duration), max(closing, spoken)))
        if following - end < close:
            # Where two cues begin almost together, the first one keeps half of the time between them.
            end = following - min(gap, (following - start) // 2)
        end = max(start + 1, min(end, start + longest))
        cues.append(Cue(start, round(end), break_lines(group, width)))
    return cues


def _rising(starts: list[int]) -> list[int]:
    """`starts` with each at least a millisecond after the one before."""
    for i in range(1, len(starts)):
        starts[i] = max(starts[i], starts[i - 1] + 1)
    return starts


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
