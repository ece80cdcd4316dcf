"""One list of rows over all inputs: one numbering, read lazily, checked before the work."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from oasr.errors import ManifestError
from oasr.manifest.duplicates import IdScan, count_if_distinct, scan_ids
from oasr.manifest.reader import Reader
from oasr.types import RowFailure, Utterance

_OF_A_CHANNEL = re.compile(r"(.+)-ch\d+", re.DOTALL)  # an id may hold line ends


class InputList:
    """The rows of all inputs, in order. Iterate as often as needed; rows are read on the way.

    Memory: a block of lines while reading, eight bytes a row while `check_ids` runs, 16 bytes a
    line of each side table of a Kaldi folder, and the file names of folders and globs.
    """

    def __init__(self, readers: Sequence[Reader], shard: tuple[int, int] | None = None) -> None:
        """Use `open_inputs`; `shard` as in InputOptions."""
        self._readers = readers
        self._first, self._step = shard or (0, 1)
        self._total: int | None = None

    def __iter__(self) -> Iterator[Utterance | RowFailure]:
        """The shard's rows; `index` is the position in the whole list.

        Raises:
            ManifestError: a manifest can no longer be read.
        """
        return self._rows(self._first, self._step)

    def all_shards(self) -> Iterator[Utterance | RowFailure]:
        """The rows of all shards, for what has to hold of the list as a whole.

        Raises:
            ManifestError: as for the shard's rows.
        """
        return self._rows(0, 1)

    @property
    def sources(self) -> tuple[str, ...]:
        """Every file and folder that was named or is read as a list; no output may overwrite one."""
        return tuple(chain.from_iterable(reader.paths for reader in self._readers))

    def check_ids(self) -> None:
        """Refuse a list that cannot be worked through as a whole; looks at all shards' rows.

        Raises:
            ManifestError: two rows have one id (names both places), there is no row at all, or
                a Kaldi folder has a recording id twice.
        """
        for reader in self._readers:
            reader.check()
        # For the whole list or not at all: a key of one input cannot be compared with an id of another.
        distinct = count_if_distinct(chain.from_iterable(reader.keys() for reader in self._readers))
        scan = (
            scan_ids(lambda: chain.from_iterable(reader.ids() for reader in self._readers))
            if distinct is None
            else IdScan(distinct)
        )
        self._total = scan.count
        if scan.count == 0:
            raise ManifestError(f"no rows in {', '.join(reader.path for reader in self._readers)}")
        if scan.pair is not None:
            first, second = (self._place(position) for position in scan.pair)
            more = f" ({scan.repeats} rows in all repeat an id)" if scan.repeats > 1 else ""
            raise ManifestError(
                f"two rows have the id {scan.id!r}: {first} and {second}{more}; "
                "results are named by id, so give each row one of its own"
            )

    def check_split_ids(self, all_rows: bool) -> None:
        """Refuse a list in which a channel of one row would go by the id of another (`x` split, and `x-ch0`).

        Args:
            all_rows: the run splits the channels of every row; else only of those that say so themselves.

        Raises:
            ManifestError: names both ids.
        """
        splits = None
        if not all_rows:
            splits = set(chain.from_iterable(reader.split_ids() for reader in self._readers))
            if not splits:
                return
        # Two passes: few ids look like a channel's, and only those are held, not every id of the list.
        of_a_channel = (found for name in self._ids() if (found := _OF_A_CHANNEL.fullmatch(name)))
        taken = {found[1]: found[0] for found in of_a_channel if splits is None or found[1] in splits}
        clash = next((name for name in self._ids() if name in taken), None) if taken else None
        if clash is not None:
            raise ManifestError(
                f"the channels of row {clash!r} go by {clash}-ch0, {clash}-ch1, ..., and a row has the id "
                f"{taken[clash]!r}; give one of the two another id, or do not split channels"
            )

    def count(self) -> int:
        """Number of rows of this shard; free after `check_ids`."""
        return len(range(self._first, self.total(), self._step))

    def total(self) -> int:
        """Number of rows of all shards; free after `check_ids`."""
        if self._total is None:
            self._total = sum(reader.count() for reader in self._readers)
        return self._total

    def sha256(self) -> str:
        """Hex digest of the list, for the record of a run: of one manifest, that of the file.

        Of several inputs, the digest of their digests, one a line. Shards of one list share it.
        """
        digests = [reader.sha256() for reader in self._readers]
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()

    def _rows(self, first: int, step: int) -> Iterator[Utterance | RowFailure]:
        index = 0
        for reader in self._readers:
            for entry in reader.entries():
                if index % step == first:
                    yield reader.row(entry, index)
                index += 1

    def _ids(self) -> Iterator[str]:
        blocks = chain.from_iterable(reader.ids() for reader in self._readers)
        return chain.from_iterable(blocks)

    def _place(self, position: int) -> str:
        places = ((reader, entry) for reader in self._readers for entry in reader.entries())
        reader, entry = next(islice(places, position, None))
        return reader.place(entry)
