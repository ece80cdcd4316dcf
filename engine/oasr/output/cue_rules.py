"""What the flags say about subtitles: the rules that cues keep, and how words are marked."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real

from oasr.errors import OptionsError

_WHOLE = ("max_line_width", "max_line_count")


@dataclass(frozen=True, slots=True)
class CueRules:
    """The limits of a subtitle cue. Times in seconds, widths in columns (a full-width character takes two).

    The defaults are those of Netflix's Timed Text Style Guides (general requirements, timing
    guidelines and the guides of each language), but for `cue_pause`, for which no guide has a figure.

    Attributes:
        max_line_width: columns of a line; None = by script: 42 columns, for Chinese and Korean 32
            (16 full-width characters), for Japanese 26 (13).
        max_line_count: lines of a cue.
        min_cue_duration: a shorter cue stays on the screen until then, where the next one permits it.
        max_cue_duration: no cue made of words stays longer.
        cue_pause: silence between two words that always ends a cue.
        cue_gap: least time between two cues (two frames of film).
        close_cue_gap: a shorter gap is closed down to `cue_gap`, since it would only flicker.
    """

    max_line_width: int | None = None
    max_line_count: int = 2
    min_cue_duration: float = 0.833
    max_cue_duration: float = 7.0
    cue_pause: float = 1.0
    cue_gap: float = 0.083
    close_cue_gap: float = 0.5

    def __post_init__(self) -> None:
        """Raise OptionsError for a value of another type or outside its range, naming what is expected."""
        for name in self.__slots__:
            value = getattr(self, name)
            if value is None and name == "max_line_width":
                continue
            whole = name in _WHOLE
            least, most = (1, 1000) if whole else (0, 3600)
            number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
            if not (number and least <= value <= most):  # which NaN is not either
                kind = "a whole number" if whole else "seconds"
                raise OptionsError(f"{name}: expected {kind} within {least}..{most}, got {value!r}")
        if self.max_cue_duration < max(self.min_cue_duration, 0.001):
            raise OptionsError(
                f"max_cue_duration: expected at least min_cue_duration ({self.min_cue_duration} s) "
                f"and a millisecond, got {self.max_cue_duration!r}"
            )


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """What a run says to those of its writers that listen (`Writer.configured`).

    Attributes:
        cues: the rules of formats that are made of cues.
        highlight_words: mark each word with the time when it is spoken, in formats that can.
    """

    cues: CueRules = field(default_factory=CueRules)
    highlight_words: bool = False
