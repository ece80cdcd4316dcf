"""What the Python API accepts → rows: paths, arrays with a rate, Utterances."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from oasr.errors import OptionsError
from oasr.types import RowFailure, Utterance


def utterances_of(items: Iterable[Any], start: int = 0) -> Iterator[Utterance | RowFailure]:
    """Yield one row an item, numbered from `start`.

    Raises:
        OptionsError: an item that is neither a path, an Utterance nor (samples, sample_rate), or
            `items` is itself one path.
    """
    if isinstance(items, (str, bytes, os.PathLike)):
        raise OptionsError(f"expected a list of items, got the single path {items!r}; write [{items!r}]")
    for index, item in enumerate(items, start):
        yield utterance_of(item, index)


def utterance_of(item: Any, index: int) -> Utterance | RowFailure:
    """The row for one item; an array gets the id `item-<index>`."""
    if isinstance(item, Utterance):
        _check_types(item, index)
        return replace(item, index=index)
    if isinstance(item, RowFailure):
        return replace(item, index=index)
    if isinstance(item, (str, os.PathLike)):
        path = os.fspath(item)
        return Utterance(Path(path).stem or path, str(path), index)
    if (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[1], Integral)
        and not isinstance(item[1], bool)
    ):
        return Utterance(f"item-{index}", index=index, samples=item[0], sample_rate=int(item[1]))
    found = f"a tuple of {', '.join(type(part).__name__ for part in item)}" if isinstance(item, tuple) else ""
    raise OptionsError(
        f"item {index}: expected a path, an Utterance or (samples, sample_rate in Hz as an integer), "
        f"got {found or type(item).__name__}"
    )


def _check_types(row: Utterance, index: int) -> None:
    """Refuse what no list could have given: readers take the types of a row's fields for granted.

    Raises:
        OptionsError: names the item, the field and what it takes.
    """
    fields = (
        ("id", str, "a string"),
        ("audio", (str, os.PathLike), "a path"),
        ("offset", Real, "seconds as a number"),
        ("duration", (Real, type(None)), "seconds as a number, or None"),
    )
    for name, kind, expected in fields:
        value = getattr(row, name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise OptionsError(f"item {index}: {name}: expected {expected}, got {value!r}")
