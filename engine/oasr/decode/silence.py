"""Where a recording is silent, and spans of tokens that end there.

Attention says which token is being said, not whether one is: a path through it has to put every frame of a
pause into some token. What the recording itself tells is taken out again, so that the word before a
pause does not last through it, nor the word after it begin early.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Spans = NDArray[np.int64]

PAUSE_FRAMES = 15  # 0.3 s of Whisper; a stop consonant is silent for a third of that
_SMOOTH_FRAMES = 3
_FLOOR_PERCENTILE, _SPEECH_PERCENTILE = 10, 95
_RANGE_DB = 40.0  # what is softer than that, against loud speech, is no speech
_LEAST_RANGE_DB = 10.0  # steady sound has no pauses to be found
_THRESHOLD = 1 / 3  # of the way from the floor to the level of speech, in decibels
_NO_SOUND_DB = -100.0
_SPOKEN_MARKS = frozenset("%&@#*/\\")


def loud_frames(samples: NDArray[np.float32], per_frame: int, frames: int) -> NDArray[np.bool_]:
    """Which of the first `frames` frames of `per_frame` samples hold more than the background.

    The background is the level that a tenth of the frames stays under. It depends on the recording
    alone; in one without pauses nothing but its softest consonants falls below the threshold.
    """
    padded = np.zeros(frames * per_frame)
    padded[: len(samples)] = samples[: len(padded)]
    power = np.square(padded.reshape(frames, per_frame)).mean(1)
    # Cut by hand: mode "same" would give three values for a single frame.
    smooth = np.convolve(power, np.full(_SMOOTH_FRAMES, 1 / _SMOOTH_FRAMES))[1 : frames + 1]
    level = 10 * np.log10(smooth + 10 ** (_NO_SOUND_DB / 10))
    floor, speech = np.percentile(level, (_FLOOR_PERCENTILE, _SPEECH_PERCENTILE))
    floor = max(floor, speech - _RANGE_DB)
    if speech - floor < _LEAST_RANGE_DB:
        return np.ones(frames, dtype=bool)
    return level > floor + _THRESHOLD * (speech - floor)


def stop_at_pauses(spans: Spans, loud: NDArray[np.bool_]) -> Spans:
    """`spans` without the pauses at their ends; a span that is one keeps a single frame.

    Args:
        spans: (n, 2) frames, half-open and not empty.
        loud: as `loud_frames` gives them, at least as many as the spans reach.
    """
    first, end = spans[:, 0], spans[:, 1]
    index = np.arange(len(loud))
    # Running extremes: the next loud frame at or behind each frame, and the last one at or before it.
    next_loud = np.minimum.accumulate(np.where(loud, index, len(loud))[::-1])[::-1][first]
    last_loud = np.maximum.accumulate(np.where(loud, index, -1))[end - 1]
    silent = next_loud >= end
    begins_late = ~silent & (next_loud - first >= PAUSE_FRAMES)
    ends_early = ~silent & (end - 1 - last_loud >= PAUSE_FRAMES)
    out = np.stack([np.where(begins_late, next_loud, first), np.where(ends_early, last_loud + 1, end)], 1)
    # The frame beside the sound before it; before the first sound, the one beside that.
    collapsed = silent & (end - first >= PAUSE_FRAMES)
    frame = np.where(last_loud < 0, end - 1, first)
    out[collapsed] = np.stack([frame, frame + 1], 1)[collapsed]
    return out


def rest_marks(spans: Spans, pieces: Sequence[str]) -> Spans:
    """`spans` in which punctuation takes no time of its own: one frame of the token that it is written at.

    Punctuation makes no sound, and a path puts pauses into it. An opening mark takes the first frame
    of the token after it, others take the last frame of the token before.
    """
    out = spans.copy()
    marks = [_is_mark(piece) for piece in pieces]
    opens = [mark and _opens(pieces, i) for i, mark in enumerate(marks)]
    # In reading order, so that a run of marks rests at the last word before it.
    for i in range(1, len(pieces)):
        if marks[i] and not opens[i]:
            out[i] = out[i - 1, 1] - 1, out[i - 1, 1]
    for i in range(len(pieces) - 2, -1, -1):
        if opens[i]:
            out[i] = out[i + 1, 0], out[i + 1, 0] + 1
    return out


def _is_mark(piece: str) -> bool:
    text = piece.strip()
    return bool(text) and all(
        unicodedata.category(char)[0] == "P" and char not in _SPOKEN_MARKS for char in text
    )


def _opens(pieces: Sequence[str], i: int) -> bool:
    """Whether the mark `pieces[i]` belongs to what follows: it is written at the start of a word."""
    following = pieces[i + 1] if i + 1 < len(pieces) else " "
    if not following or following[0].isspace():
        return False
    mark = pieces[i].strip()[-1]
    return i == 0 or pieces[i][0].isspace() or mark in "¿¡" or unicodedata.category(mark) in ("Ps", "Pi")
