"""What every tokenizer offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

REPLACEMENT = "\ufffd"
MOST_LABELS = 1 << 20
"""Labels that a vocabulary may have: three times the largest in use. A table has a place for each."""
_CONTEXT, _LONGEST = 8, 64
"""Ids before one that may decide how it is written, and the most that are decoded with it."""


@dataclass(frozen=True, slots=True)
class IncrementalText:
    """Where an incremental decode stands.

    Attributes:
        ids: labels decoded so far (kept only by tokenizers that must look back).
        text: text emitted so far, likewise.
        pending: bytes that do not yet make a whole character.
    """

    ids: tuple[int, ...] = ()
    text: str = ""
    pending: bytes = b""


class Tokenizer(ABC):
    """Ids ↔ text. Special ids (control tokens) render as nothing.

    `decode` returns what the ids spell, leading space included where the vocabulary carries one:
    whoever joins windows needs to know whether a word or a script without spaces goes on.
    """

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Number of ids that the vocabulary names, special ones included."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Label ids of `text`; no control token is added, none is recognised inside the text."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`. Special ids and ids outside the vocabulary are skipped."""

    def special_id(self, content: str) -> int | None:
        """Id of the control token written `content`, or None."""
        return self.special_ids.get(content)

    @property
    def special_ids(self) -> dict[str, int]:
        """Control tokens by content."""
        return {}

    def decode_incremental(
        self, new_ids: Sequence[int], state: IncrementalText | None = None
    ) -> tuple[str, IncrementalText]:
        """The text that `new_ids` add, and the state to pass with the next ids.

        Text that later ids could still change (an incomplete character) is held back. This
        default decodes everything again; tokenizers that render piece by piece override it.
        """
        state = state or IncrementalText()
        ids = (*state.ids, *new_ids)
        text = self.decode(ids)
        stable = text.rstrip(REPLACEMENT)
        if not stable.startswith(state.text):
            return "", IncrementalText(ids, state.text)
        return stable[len(state.text) :], IncrementalText(ids, stable)

    def flush(self, state: IncrementalText) -> str:
        """What is still held back when no more ids come."""
        return self.decode(state.ids)[len(state.text) :]

    def token_pieces(self, ids: Sequence[int]) -> list[str]:
        """One string an id; joined they equal `decode(ids)`. Takes time in proportion to the ids.

        A character that spans several ids belongs to the id that completes it. This default decodes
        each id behind a few of those before it; tokenizers that render piece by piece override it.
        """
        sizes, start, shown = [], 0, 0
        for end in range(1, len(ids) + 1):
            text = self.decode(ids[start:end])
            # A character takes four bytes at most: what is incomplete for longer will stay so.
            stable = text if end - start > _LONGEST + 4 else text.rstrip(REPLACEMENT)
            sizes.append(max(0, len(stable) - shown))
            shown = max(shown, len(stable))
            if stable == text and end - start > 2 * _CONTEXT:
                context = self.decode(ids[end - _CONTEXT : end])
                # Not in the middle of what is decoded together, such as the bytes of a character.
                if context and text.endswith(context.strip()):
                    start, shown = end - _CONTEXT, len(context)
                elif end - start > _LONGEST:
                    start, shown = end, 0
        return _cut(self.decode(ids), sizes)


def _cut(text: str, sizes: Sequence[int]) -> list[str]:
    """`text` in pieces of those sizes; the last one takes what is left."""
    ends = [*accumulate(sizes[:-1]), len(text)] if sizes else []
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
