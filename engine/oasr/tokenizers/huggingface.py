"""`tokenizer.json` of the Hugging Face tokenizers library, or the vocab.json + merges.txt before it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.errors import CheckpointError
from oasr.tokenizers.base import MOST_LABELS, IncrementalText, Tokenizer
from oasr.tokenizers.byte_level import ByteTable, token_bytes

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

_TIMESTAMP = re.compile(r"<\|\d+\.\d+\|>")


class HuggingFaceTokenizer(Tokenizer):
    """A tokenizer of the tokenizers library.

    Byte-level vocabularies (GPT-2, Whisper, Qwen) are rendered from a byte table; all others go
    through the library's own decoder.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        # Control tokens written out in a prompt are text, not commands.
        backend.encode_special_tokens = True
        _hide_timestamps(backend)
        added = backend.get_added_tokens_decoder()
        self._special = {token.content: i for i, token in added.items() if token.special}
        self._plain_added = {i: token.content for i, token in added.items() if not token.special}
        self._hidden = frozenset(self._special.values())
        self._table = self._byte_table() if "ByteLevel" in self.decoder_types else None

    @classmethod
    def from_folder(cls, folder: Path) -> HuggingFaceTokenizer | None:
        """The tokenizer stored in `folder`, or None when there is none."""
        if (folder / "tokenizer.json").is_file():
            return cls.from_file(folder / "tokenizer.json")
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            return cls(_from_vocab_and_merges(folder))
        return None

    @classmethod
    def from_file(cls, path: Path) -> HuggingFaceTokenizer:
        """Read a tokenizer.json. Raises CheckpointError when it is not one."""
        from tokenizers import Tokenizer as Backend

        try:
            return cls(Backend.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception
            raise CheckpointError(f"{path}: not a readable tokenizer.json ({error})") from error

    @property
    def decoder_types(self) -> frozenset[str]:
        """What the library calls the decoder of this tokenizer, and the parts of one that has several."""
        return _decoder_types(self._backend)

    @property
    def vocab_size(self) -> int:
        """Number of ids that the vocabulary names, special ones included."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    @property
    def special_ids(self) -> dict[str, int]:
        """Control tokens by content."""
        return dict(self._special)

    def encode(self, text: str) -> list[int]:
        """Label ids of `text`, without control tokens."""
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, special ids skipped."""
        if self._table is not None:
            return self._table.text(ids)
        size = self.vocab_size
        return str(self._backend.decode([i for i in ids if 0 <= i < size], skip_special_tokens=True))

    def decode_incremental(
        self, new_ids: Sequence[int], state: IncrementalText | None = None
    ) -> tuple[str, IncrementalText]:
        """The text that `new_ids` complete, and the state for the next call."""
        if self._table is None:
            return super().decode_incremental(new_ids, state)
        return self._table.extend(new_ids, state or IncrementalText())

    def flush(self, state: IncrementalText) -> str:
        """What is still held back when no more ids come."""
        if self._table is None:
            return super().flush(state)
        return state.pending.decode("utf-8", "replace")

    def token_pieces(self, ids: Sequence[int]) -> list[str]:
        """One string an id; joined they equal `decode(ids)`."""
        return super().token_pieces(ids) if self._table is None else self._table.pieces(ids)

    def _byte_table(self) -> ByteTable:
        vocab = self._backend.get_vocab(with_added_tokens=True)
        last = max(vocab.values(), default=-1)
        if last >= MOST_LABELS:
            raise CheckpointError(f"expected ids below {MOST_LABELS}, found {last}")
        entries = [b""] * (last + 1)
        for token, index in vocab.items():
            if index in self._plain_added:
                entries[index] = token.encode()
            elif index not in self._hidden:
                entries[index] = token_bytes(token)
        return ByteTable(entries)


def _hide_timestamps(backend: Backend) -> None:
    """Mark Whisper's `<|0.00|>` to `<|30.00|>` as special: some files list them as plain text."""
    from tokenizers import AddedToken

    added = backend.get_added_tokens_decoder().values()
    plain = [t.content for t in added if not t.special and _TIMESTAMP.fullmatch(t.content)]
    # Adding one again keeps its id.
    backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in plain])


def _decoder_types(backend: Backend) -> frozenset[str]:
    # A decoder of the library has no attribute for its kind; its JSON names it.
    decoder = json.loads(backend.decoder.__getstate__()) if backend.decoder is not None else {}
    return frozenset(str(part.get("type")) for part in (decoder, *decoder.get("decoders", ())))


def _from_vocab_and_merges(folder: Path) -> Backend:
    from tokenizers import AddedToken, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Backend

    try:
        model: Any = models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
        added = folder / "added_tokens.json"
        extra: dict[str, int] = json.loads(added.read_text("utf-8")) if added.is_file() else {}
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(f"{folder}: vocab.json and merges.txt cannot be read ({error})") from error
    backend = Backend(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    # In the order of their numbers: the library numbers what is added by itself.
    ordered = sorted(extra, key=lambda token: extra[token])
    control = [t for t in ("<|endoftext|>", *ordered) if t.startswith("<|") and t.endswith("|>")]
    backend.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t in dict.fromkeys(control)]
    )
    wrong = [t for t in ordered if backend.token_to_id(t) not in (None, extra[t])]
    if wrong:
        raise CheckpointError(f"{folder}: added_tokens.json numbers {wrong[0]!r} out of order")
    return backend
