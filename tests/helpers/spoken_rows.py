"""Rows of every sort whose end is known: spoken digits, silence, recordings that are none, slow commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from hypothesis import strategies as st
from oasr.types import Utterance

WINDOW_S = 4.0
"""Longest window to run these rows with: long ones have several, each cut in a pause."""
KINDS = ("short", "short", "long", "broken", "empty", "slow", "again")
_SHORT_S, _PAUSE_S, _RATE = 3.1, 0.8, 8000


@dataclass(frozen=True)
class Sound:
    """A recording and what must come of it: a text, or an error (None)."""

    path: Path
    text: str | None


@dataclass(frozen=True)
class SpokenRow:
    """A row of a list. Its recording lies under a name of its own, so that an error names it too."""

    id: str
    sound: Sound
    link: str
    slow: bool = False
    piped: bool = False

    def utterance(self, folder: Path, index: int) -> Utterance:
        path = str(folder / self.link)
        return Utterance(self.id, path, index=index, command=_late(path) if self.slow else None)

    def is_right(self, text: str | None, error: str | None) -> bool:
        """Whether this is the row's own text, or its own error, and nothing else."""
        if self.sound.text is None:
            return text is None and error is not None and self.link in error
        return error is None and text == self.sound.text


class Sounds:
    """The recordings of all kinds, each with a text that no other one has."""

    def __init__(self, folder: Path, digits: Path) -> None:
        """Write what has to be made into `folder`; `digits` is the list of spoken digits."""
        self._folder = folder
        rows = [json.loads(line) for line in digits.read_text("utf-8").splitlines()]
        known = [Sound(digits.parent / row["audio"], row["text"]) for row in rows]
        self.short = [sound for sound in known if soundfile.info(sound.path).duration <= _SHORT_S]
        # The model hears all of these rightly when each is alone; the next one it does not.
        self.long = [self._joined(start, 3 + start % 3) for start in range(0, 20, 2)]
        self.broken = [
            self._written("page.wav", b"<html>not found</html>" * 40),
            self._written("cut.flac", known[0].path.read_bytes()[:60]),
            self._written("none.wav", b""),
            Sound(folder / "missing.wav", None),
        ]
        self.empty = [self._samples("silence.wav", _RATE, ""), self._samples("nothing.wav", 0, None)]

    def _joined(self, start: int, count: int) -> Sound:
        """Several short recordings with pauses between them: as many windows."""
        pause = np.zeros(round(_PAUSE_S * _RATE), np.float32)
        said = [self.short[(start + step) % len(self.short)] for step in range(count)]
        parts = [part for one in said for part in (soundfile.read(one.path, dtype="float32")[0], pause)]
        path = self._folder / f"long-{start}.wav"
        soundfile.write(path, np.concatenate(parts), _RATE)
        return Sound(path, " ".join(one.text or "" for one in said))

    def _written(self, name: str, data: bytes) -> Sound:
        (self._folder / name).write_bytes(data)
        return Sound(self._folder / name, None)

    def _samples(self, name: str, count: int, text: str | None) -> Sound:
        soundfile.write(self._folder / name, np.zeros(count, np.int16), _RATE)
        return Sound(self._folder / name, text)


@st.composite
def spoken_lists(draw: st.DrawFn, sounds: Sounds, most: int = 9) -> list[SpokenRow]:
    """Random rows in random order; no two share a text, unless one is the other's recording again."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=most))
    names = draw(st.permutations([f"row{number}" for number in range(len(kinds))]))
    first = draw(st.integers(0, len(sounds.short) - 1))
    rows: list[SpokenRow] = []
    for number, (kind, name) in enumerate(zip(kinds, names, strict=True)):
        piped = kind == "slow" or draw(st.booleans())
        if kind == "again" and rows:
            # The very same file, or a copy under a name of its own.
            other = draw(st.sampled_from(rows))
            link = other.link if draw(st.booleans()) else f"of-{name}.wav"
            rows.append(SpokenRow(name, other.sound, link, piped=piped))
            continue
        if kind in ("long", "broken", "empty"):
            pool = getattr(sounds, kind)
            sound = pool[(first + number) % len(pool)]
        else:
            sound = sounds.short[(first + number) % len(sounds.short)]
        rows.append(SpokenRow(name, sound, f"of-{name}.wav", slow=kind == "slow", piped=piped))
    return rows


def lay_out(folder: Path, rows: Sequence[SpokenRow]) -> None:
    """Put every row's recording into `folder`, under the row's name for it."""
    folder.mkdir()
    for link, sound in {row.link: row.sound for row in rows}.items():
        if sound.path.exists():
            (folder / link).symlink_to(sound.path)


def write_inputs(folder: Path, rows: Sequence[SpokenRow]) -> tuple[list[str], list[SpokenRow]]:
    """The rows as inputs of the command, and in the order of that list: a Kaldi folder, then a manifest."""
    lay_out(folder, rows)
    piped, plain = ([row for row in rows if row.piped is kind] for kind in (True, False))
    inputs = []
    if piped:
        (folder / "kaldi").mkdir()
        lines = [
            f"{row.id} {_late(f'{folder / row.link}') + ' |' if row.slow else folder / row.link}\n"
            for row in piped
        ]
        (folder / "kaldi" / "wav.scp").write_text("".join(lines))
        inputs.append(str(folder / "kaldi"))
    if plain:
        lines = [json.dumps({"id": row.id, "audio": row.link}) + "\n" for row in plain]
        (folder / "list.jsonl").write_text("".join(lines))
        inputs.append(str(folder / "list.jsonl"))
    return inputs, piped + plain


def _late(path: str) -> str:
    """A command that lets the rows behind it go first."""
    return f"sleep 0.04; cat {shlex.quote(path)}"
