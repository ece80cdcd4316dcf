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
        self._builtin = dict(builtin or {})
        self._targets = dict(self._builtin)
        self._loaded: dict[str, T] = {}
        self._scanned = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that adds its argument under `name`; a second claim on a name is refused."""

        def add(entry: T) -> T:
            # A built-in entry may register itself when its module is imported: that is no second claim.
            known = self._loaded.get(name, self._builtin.get(name, entry))
            if known is not entry and known != _target_of(entry):
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
            OptionsError: no such entry (the message lists the known names), or an installed package's
                entry that cannot be imported.
        """
        self._scan()
        if name not in self._loaded:
            target = self._targets.get(name)
            if target is None:
                raise OptionsError(f"unknown {self.kind} {name!r}; known: {', '.join(self.names())}")
            # The import itself may have registered the entry.
            self._loaded.setdefault(name, self._load(name, target))
        return self._loaded[name]

    def items(self) -> Iterator[tuple[str, T]]:
        """(name, entry) pairs in name order; imports every entry."""
        for name in self.names():
            yield name, self.get(name)

    def _load(self, name: str, target: str) -> T:
        module, _, attribute = target.partition(":")
        # An error in a module of ours is a bug and keeps its type and traceback.
        if name in self._builtin:
            return getattr(import_module(module), attribute)
        try:
            return getattr(import_module(module), attribute)
        except Exception as error:
            raise OptionsError(
                f"{self.kind} {name!r} of an installed package cannot be imported from {target!r} "
                f"({type(error).__name__}: {error}); repair or uninstall the package that provides it"
            ) from error

    def _scan(self) -> None:
        if self._scanned:
            return
        # Not at import: this reads the metadata of every installed package.
        found: dict[str, str] = {}
        for point in entry_points(group=self.group):
            if (
                point.name in self._targets
                or point.name in found
                or self._is_another(point.name, point.value)
            ):
                raise OptionsError(
                    f"{self.kind} {point.name!r} of package entry point {point.value!r} is taken already; "
                    "uninstall one of the two packages"
                )
            found[point.name] = point.value
        self._targets |= found
        self._scanned = True

    def _is_another(self, name: str, target: str) -> bool:
        """Whether `name` was registered already by something else than the entry that `target` leads to."""
        known = self._loaded.get(name)
        return known is not None and _target_of(known) != target and self._load(name, target) is not known


def _target_of(entry: object) -> str:
    """The import target that leads to `entry`, as built-in entries are named."""
    return f"{getattr(entry, '__module__', '')}:{getattr(entry, '__qualname__', '')}"
