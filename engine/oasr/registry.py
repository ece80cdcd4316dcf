"""One small name → object table, used by every axis (families, models, formats, writers)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from oasr.errors import OptionsError

T = TypeVar("T")


class Registry(Generic[T]):
    """Named entries of one kind, looked up with an error that lists what exists.

    Built-in entries are named lazily as `"package.module:attribute"`, so that looking at the
    table imports nothing. Installed packages add entries through the entry-point group `group`.
    """

    def __init__(self, kind: str, group: str, builtin: dict[str, str] | None = None) -> None:
        """`kind` is the word used in messages; `builtin` maps names to import targets."""
        self.kind = kind
        self.group = group
        self._targets: dict[str, str] = dict(builtin or {})
        self._loaded: dict[str, T] = {}
        self._scanned = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that adds its argument under `name`; a second claim on a name is refused."""

        def add(entry: T) -> T:
            known = self._loaded.get(name)
            if known is not None and known is not entry:
                raise OptionsError(f"{self.kind} {name!r} is already registered by {known!r}")
            self._loaded[name] = entry
            return entry

        return add

    def names(self) -> list[str]:
        """All known names, sorted."""
        self._scan()
        return sorted({*self._targets, *self._loaded})

    def get(self, name: str) -> T:
        """The entry called `name`.

        Raises:
            OptionsError: no such entry; the message lists the known names.
        """
        self._scan()
        if name not in self._loaded:
            target = self._targets.get(name)
            if target is None:
                raise OptionsError(f"unknown {self.kind} {name!r}; known: {', '.join(self.names())}")
            module, _, attribute = target.partition(":")
            entry = getattr(import_module(module), attribute)
            self._loaded.setdefault(name, entry)
        return self._loaded[name]

    def items(self) -> Iterator[tuple[str, T]]:
        """(name, entry) pairs in name order; imports every entry."""
        for name in self.names():
            yield name, self.get(name)

    def _scan(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        for point in entry_points(group=self.group):
            if point.name in self._targets or point.name in self._loaded:
                raise OptionsError(
                    f"{self.kind} {point.name!r} of package entry point {point.value!r} is taken already"
                )
            self._targets[point.name] = point.value
