"""Reading YAML configurations: every key is read, known to be irrelevant, or refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oasr.errors import CheckpointError

_LONGEST_YAML = 1 << 20
_MOST = 1 << 20
MOST_LAYERS = 1000


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping of plain values; tags that would build other objects are refused."""
    import yaml

    try:
        text = path.read_text("utf-8")
        if len(text) > _LONGEST_YAML:
            raise ValueError(f"{len(text)} characters, expected at most {_LONGEST_YAML}")
        value = yaml.safe_load(text)
    # Besides its own errors the parser lets out those of int(), datetime() and the like.
    except (OSError, ValueError, ArithmeticError, RecursionError, yaml.YAMLError) as error:
        raise CheckpointError(f"{path}: cannot be read as YAML ({error})") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: expected a mapping, found {type(value).__name__}")
    _check_aliases(value, path)
    return value


def _check_aliases(value: Any, path: Path) -> None:
    """Refuse aliases of aliases: they take no memory here, but whoever walks or prints them never ends."""
    left, written = [value], 0
    while left:
        found = left.pop()
        written += len(found) if isinstance(found, (str, bytes)) else 1
        if isinstance(found, Mapping):
            left += [*found.keys(), *found.values()]
        elif isinstance(found, (list, tuple, set)):
            left += found
        if max(written, len(left)) > _LONGEST_YAML:
            raise CheckpointError(
                f"{path}: its aliases (*name) stand for more than {_LONGEST_YAML} values; write them out"
            )


class Section:
    """One mapping of a configuration. `finish` refuses what nobody asked for.

    A key that silently changes the network would give wrong transcripts and no error, so unknown
    keys are errors. `null` means the default, as in the toolkits.
    """

    def __init__(self, values: Any, where: str) -> None:
        """`where` names the mapping in messages (`train.yaml: encoder_conf`)."""
        if values is None:
            values = {}
        if not isinstance(values, Mapping):
            raise CheckpointError(f"{where}: expected a mapping, found {type(values).__name__}")
        self._values: dict[str, Any] = {str(key): value for key, value in values.items()}
        self._where = where
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        # Being asked for does not count as being read.
        return self._values.get(key) is not None

    def states(self, key: str) -> bool:
        """Whether the key is there at all, be it with `null`."""
        return key in self._values

    def raw(self, key: str) -> Any:
        """The value as it stands; None when absent."""
        self._read.add(key)
        return self._values.get(key)

    def section(self, key: str) -> Section:
        """The mapping under `key`; an empty one when absent."""
        return Section(self.raw(key), f"{self._where}: {key}")

    def integer(self, key: str, default: int | None = None, least: int = 1, most: int = _MOST) -> int:
        """An integer from `least` to `most`: what is larger would only be noticed once it has been built."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(key, f"an integer >= {least} and at most {most}", value)
        return value

    def number(self, key: str, default: float) -> float:
        """A finite number; `1e-5`, which YAML 1.1 takes for a string, is one too."""
        value = self._value(key, default)
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise self._wrong(key, "a number", value)
        return number

    def flag(self, key: str, default: bool) -> bool:
        """A switch: true or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def text(self, key: str, default: str) -> str:
        """A string."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return value

    def expect(self, **only: Any) -> None:
        """Refuse any value of these keys but the one given, absence included in it."""
        for key, wanted in only.items():
            if self._value(key, wanted) != wanted:
                raise CheckpointError(
                    f"{self._where}: {key}: only {wanted!r} is implemented, found {self._values[key]!r}"
                )

    def ignore(self, *keys: str) -> None:
        """Keys that do not matter for decoding."""
        self._read.update(keys)

    def finish(self) -> None:
        """Raise CheckpointError when a key has not been asked for."""
        unknown = sorted(set(self._values) - self._read)
        if unknown:
            raise CheckpointError(
                f"{self._where}: unknown {', '.join(unknown)}; it may change the network, so it is not "
                f"ignored (known: {', '.join(sorted(self._read))})"
            )

    def _value(self, key: str, default: Any) -> Any:
        value = self.raw(key)
        return default if value is None else value

    def _wrong(self, key: str, expected: str, found: Any) -> CheckpointError:
        return CheckpointError(f"{self._where}: {key}: expected {expected}, found {found!r}")
