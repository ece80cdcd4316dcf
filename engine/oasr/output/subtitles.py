"""`--format srt` and `vtt`: one subtitle file an utterance, timed in the original recording.

SubRip has no specification and no escapes: text is written as it is, but for the arrow of a line that
players would take for times. WebVTT is the W3C's, with `&`, `<` and `>` escaped, so that no text can be
taken for a tag or an arrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from oasr.output.cue_writer import CueWriter
from oasr.output.cues import Cue, cues_of
from oasr.types import RequestOutput

# Browsers tell words before and after the current time tag apart; elsewhere the style is passed over.
_HIGHLIGHT_STYLE = "\nSTYLE\n::cue(:future) {\n  color: #9e9e9e;\n}\n"
_TIME_LINE = re.compile(r"^([\d:,. ]+)-->")


class SrtWriter(CueWriter):
    """SubRip: numbered cues; an utterance without speech gives an empty file."""

    suffix = ".srt"

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """All cues of one utterance."""
        cues = cues_of(row, output, self.settings.cues)
        blocks = [_block(cue, ",", map(_unlike_times, cue.text_lines)) for cue in cues]
        # Blocks end with a line end; one more is the blank line that parts cues.
        return "\n".join(f"{number}\n{block}" for number, block in enumerate(blocks, 1))


class VttWriter(CueWriter):
    """WebVTT; an utterance without speech gives the header alone.

    With `highlight_words` each word but the first of a cue has a time tag before it: viewers show the
    words that are still to come in grey, and those that know no tags show the cue as ever.
    """

    suffix = ".vtt"
    highlights = True

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """The header and all cues of one utterance."""
        marked = self.settings.highlight_words
        blocks = [
            _block(cue, ".", _marked(cue) if marked else map(_escaped, cue.text_lines))
            for cue in cues_of(row, output, self.settings.cues)
        ]
        return "\n".join(["WEBVTT\n" + _HIGHLIGHT_STYLE * marked, *blocks])


def _block(cue: Cue, point: str, lines: Iterable[str]) -> str:
    """The time line and the text of one cue, in both formats."""
    times = f"{_clock(cue.start, point)} --> {_clock(cue.end, point)}"
    return "".join(f"{line}\n" for line in (times, *lines))


def _marked(cue: Cue) -> list[str]:
    """The lines of a cue with a time tag before each word that begins later than what stands before it.

    Tags lie within the cue and count up, as the format demands.
    """
    lines, clock = [], cue.start
    for line in cue.lines:
        text = ""
        for atom in line:
            for piece in atom.pieces:
                text += " " * (piece.spaced and bool(text))
                if clock < piece.start < cue.end:
                    clock = piece.start
                    text += f"<{_clock(clock, '.')}>"
                text += _escaped(piece.text)
        lines.append(text)
    return lines


def _unlike_times(line: str) -> str:
    return _TIME_LINE.sub(r"\1→", line)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(milliseconds: int, point: str) -> str:
    """`HH:MM:SS` and three decimals; the hours may have more digits."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{point}{rest:03d}"
