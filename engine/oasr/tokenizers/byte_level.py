"""The byte alphabet of byte-level BPE (GPT-2): every byte is written as one printable character."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from functools import cache

from oasr.tokenizers.base import IncrementalText


@cache
def byte_of_char() -> dict[str, int]:
    """Vocabulary character → byte.

    Printable Latin-1 bytes stand for themselves; the 68 others take the code points from 256 up,
    in byte order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in set(printable)]
    table = {chr(b): b for b in printable}
    table.update({chr(256 + i): b for i, b in enumerate(hidden)})
    return table


def token_bytes(token: str) -> bytes:
    """The bytes a vocabulary entry stands for; an entry outside the alphabet is taken as plain text."""
    table = byte_of_char()
    try:
        return bytes(table[c] for c in token)
    except KeyError:
        return token.encode()


class ByteTable:
    """Renders ids through a table of their bytes, the same way whole or piece by piece."""

    def __init__(self, entries: Sequence[bytes]) -> None:
        """`entries[i]` are the bytes of id i; ids beyond the table render as nothing."""
        self._entries = entries

    def raw(self, ids: Sequence[int]) -> bytes:
        """All bytes of `ids` in order."""
        size = len(self._entries)
        return b"".join(self._entries[i] for i in ids if 0 <= i < size)

    def text(self, ids: Sequence[int]) -> str:
        """Text of `ids`; invalid UTF-8 becomes U+FFFD."""
        return self.raw(ids).decode("utf-8", "replace")

    def extend(self, ids: Sequence[int], state: IncrementalText) -> tuple[str, IncrementalText]:
        """Text that `ids` complete after the bytes pending in `state`."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(state.pending + self.raw(ids))
        # The decoder keeps the bytes of a character that is not complete.
        return text, IncrementalText(pending=decoder.getstate()[0])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One string an id, joining to `text(ids)`; one pass."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # Final with the last id only: there a character that was cut becomes U+FFFD, as in `text`.
        last = len(ids) - 1
        return [decoder.decode(self.raw((token,)), index == last) for index, token in enumerate(ids)]
