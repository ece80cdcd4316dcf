"""The catalog's entries, as `catalog.toml` and installed packages describe them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class FileSum:
    """What a file must be."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Part (or all) of a model file inside an installed distribution."""

    file: str
    distribution: str
    version: str
    path: str


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository on the hub; `revision` None = not pinned, follows the main branch."""

    repo: str
    revision: str | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One named model.

    Attributes:
        parameters: millions.
        extra: pip extra that installs the package source, "" without one.
        files, pieces: the package source: what each file must be, and where its parts lie.
        hub: the hub source.
    """

    name: str
    title: str
    licence: str
    architecture: str
    languages: str
    parameters: int
    vocab_size: int
    extra: str = ""
    files: Mapping[str, FileSum] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()
    hub: HubSource | None = None


@cache
def load_catalog() -> Mapping[str, CatalogEntry]:
    """All entries by name, in the order of `catalog.toml`."""
    text = files("oasr.checkpoints").joinpath("catalog.toml").read_text("utf-8")
    return {name: _entry(name, row) for name, row in tomllib.loads(text)["models"].items()}


def _entry(name: str, row: dict[str, Any]) -> CatalogEntry:
    sums = {file: FileSum(**value) for file, value in row.pop("files", {}).items()}
    pieces = tuple(Piece(**piece) for piece in row.pop("pieces", ()))
    hub = HubSource(**row.pop("hub")) if "hub" in row else None
    # What is left of the row are plain fields.
    return CatalogEntry(name=name, files=sums, pieces=pieces, hub=hub, **row)
