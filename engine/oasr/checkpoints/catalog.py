"""Named models: what there is, where it is, and whether it is what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oasr.checkpoints import hub, packages
from oasr.checkpoints.cache import known_sha256, sha256_of
from oasr.checkpoints.catalog_data import CatalogEntry, HubSource, load_catalog
from oasr.errors import CheckpointError
from oasr.reinstall import pip_install


@dataclass(frozen=True, slots=True)
class FileCheck:
    """One file of a model, rehashed. `expected` is None where the catalog knows no digest."""

    file: Path
    expected: str | None
    found: str | None

    @property
    def ok(self) -> bool:
        """The file is there and is what the catalog says, as far as it says anything."""
        return self.found is not None and self.expected in (None, self.found)


def entries() -> list[CatalogEntry]:
    """All entries, in catalog order."""
    return list(load_catalog().values())


def find(name: str) -> CatalogEntry | None:
    """The entry called `name`, or None."""
    return load_catalog().get(name)


def get(name: str) -> CatalogEntry:
    """The entry called `name`. Raises CheckpointError, listing the names, when there is none."""
    entry = find(name)
    if entry is None:
        raise CheckpointError(f"no catalog model {name!r}; known: {', '.join(load_catalog())}")
    return entry


def installed(name: str) -> bool:
    """Whether the model is on this machine. Hashes nothing."""
    entry = get(name)
    if packages.located_pieces(entry) is not None:
        return True
    if entry.pieces and packages.assembled_folder(entry).is_dir():
        return True
    return entry.hub is not None and hub.present(entry.hub.repo, entry.hub.revision) is not None


def locate(name: str) -> Path | None:
    """Folder of the model on this machine, every file checked; None when it is not here.

    Raises:
        CheckpointError: a file is not what the catalog says.
    """
    entry = get(name)
    folder = packages.folder_of_package(entry)
    if folder is not None or entry.hub is None:
        return folder
    folder = hub.cached(entry.hub.repo, entry.hub.revision)
    return None if folder is None else _checked(folder, entry.hub)


def pull(name: str) -> Path:
    """Folder of the model, fetched from the hub when it is not on this machine.

    Raises:
        CheckpointError: it is not here and cannot be fetched; the message holds the pip command
            that installs it without a hub, where there is one.
    """
    entry = get(name)
    folder = locate(name)
    if folder is not None:
        return folder
    if entry.hub is None:
        raise CheckpointError(f"model {name!r} is not installed. {_install_hint(entry)}")
    try:
        return _checked(hub.download(entry.hub.repo, entry.hub.revision), entry.hub)
    except CheckpointError as error:
        advice = _install_hint(entry) or alternatives()
        raise CheckpointError(f"model {name!r} is not installed. {advice} {error}") from error


def alternatives() -> str:
    """What can be used without a hub, in words."""
    here = [entry.name for entry in entries() if installed(entry.name)]
    by_pip = [f"{entry.name} ({pip_install(entry.extra)})" for entry in entries() if entry.extra]
    return (
        f"Installed catalog models: {', '.join(here) or 'none'}. Available without a hub: "
        f"{', '.join(by_pip)}. Or give the path of a checkpoint folder."
    )


def verify(name: str) -> list[FileCheck]:
    """Hash every file of an installed model again, whatever was noted before.

    Raises:
        CheckpointError: the model is not installed.
    """
    entry = get(name)
    pieces = packages.located_pieces(entry)
    joined = packages.assembled_folder(entry)
    place = packages.in_place(pieces) if pieces is not None else None
    # Installed in parts that have not been joined yet.
    if place is None and pieces is not None and not joined.is_dir():
        place = packages.folder_of_package(entry)
    folder = place or (joined if entry.pieces and joined.is_dir() else None)
    if folder is not None:
        return _rehash(folder, {file: wanted.sha256 for file, wanted in entry.files.items()})
    if entry.hub is not None:
        snapshot = hub.present(entry.hub.repo, entry.hub.revision)
        if snapshot is not None:
            names: dict[str, str | None] = {p.name: None for p in sorted(snapshot.iterdir()) if p.is_file()}
            return _rehash(snapshot, {**names, **entry.hub.sha256})
    raise CheckpointError(
        f"model {name!r} is not installed. {_install_hint(entry) or 'Fetch it: oasr models pull ' + name}"
    )


def _rehash(folder: Path, expected: Mapping[str, str | None]) -> list[FileCheck]:
    return [
        FileCheck(folder / file, digest, sha256_of(folder / file) if (folder / file).is_file() else None)
        for file, digest in expected.items()
    ]


def _checked(folder: Path, source: HubSource) -> Path:
    hub.check_blobs(folder)
    for file, expected in source.sha256.items():
        path = folder / file
        found = known_sha256(path) if path.is_file() else "no file"
        if found != expected:
            raise CheckpointError(
                f"{path}: expected sha256 {expected}, found {found}; delete the snapshot and fetch it again"
            )
    return folder


def _install_hint(entry: CatalogEntry) -> str:
    return f"Install it: {pip_install(entry.extra)}." if entry.extra else ""
