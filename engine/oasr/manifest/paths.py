"""Where recordings are: which input is what, folder and glob listings, relative paths."""

from __future__ import annotations

import errno
import glob
import os
from dataclasses import dataclass
from pathlib import Path, PurePath

from oasr.errors import ManifestError

_AUDIO = """
    3g2 3gp aac ac3 aif aifc aiff amr ape asf au avi caf eac3 flac flv m4a m4b m4v mka mkv mov mp2 mp3 mp4
    mpeg mpg mpga nist oga ogg ogv opus rf64 snd sph spx tta voc w64 wav wave webm wma wmv wv
"""
AUDIO_SUFFIXES = frozenset(f".{name}" for name in _AUDIO.split())
"""What a folder listing takes; a file that is named outright is never judged by this."""
MANIFEST_SUFFIXES = frozenset((".jsonl", ".json", ".ndjson", ".manifest"))
_SNIFF_BYTES = 4096  # blank lines may come first
_LEADS_NOWHERE = (errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG)
"""Errors of a link to itself, through a file, or to a name too long; one to a missing file raises nothing."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """Turns a path that a manifest writes into one that can be opened.

    Attributes:
        bases: folders to try in order; a path that exists under none is taken under the first, so
            that the reader's message names the place where people look first.
    """

    bases: tuple[str, ...]

    def resolve(self, path: str) -> str:
        """`path` if absolute, else under the first base where it exists."""
        if path.startswith("/"):
            return path
        candidates = [f"{base}/{path}" if base else path for base in self.bases]
        # A single candidate is taken unseen: a list may have millions of rows on a network file system.
        if len(candidates) > 1:
            for candidate in candidates:
                # Not Path.exists, which raises for a name that is too long.
                if os.path.exists(candidate):  # noqa: PTH110
                    return candidate
        return candidates[0]


def readable_path(path: str) -> str:
    """`path` as text that UTF-8 can carry: a byte that is no UTF-8 is written as hexadecimal."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def suffix_of(path: str) -> str:
    """The file name's suffix in lower case, dot included."""
    return PurePath(path).suffix.lower()


def is_glob(path: str) -> bool:
    """True for a pattern; a file that really has such a name is itself, not a pattern."""
    return glob.has_magic(path) and not os.path.lexists(path)


def looks_like_manifest(path: str) -> bool:
    """Tell a JSONL manifest from a recording.

    By name when the suffix is a manifest's; else by content, when the first byte that is not blank
    is `{`. A file with the suffix of a recording is a recording whatever it holds, so that a text
    or an error page saved as `x.wav` becomes one failed row under that name.
    """
    suffix = suffix_of(path)
    if suffix in MANIFEST_SUFFIXES:
        return True
    if suffix in AUDIO_SUFFIXES:
        return False
    try:
        with Path(path).open("rb") as file:
            head = file.read(_SNIFF_BYTES)
    except OSError:
        return False  # the audio reader says why, in that row
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def list_folder(folder: str) -> list[str]:
    """Recordings under `folder` at any depth, by suffix, in code-point order of their paths.

    Hidden names are passed over, links are followed, and a folder that contains itself through a
    link is entered once.

    Raises:
        ManifestError: a folder cannot be listed; skipping it would lose recordings in silence.
    """
    found: list[str] = []
    _walk(Path(folder), (), found)
    return sorted(found)


def _walk(folder: Path, above: tuple[tuple[int, int], ...], found: list[str]) -> None:
    try:
        status = folder.stat()
        here = (status.st_dev, status.st_ino)
        # Only the folders above: a folder that is linked in two places is listed in both.
        if here in above:
            return
        with os.scandir(folder) as listing:
            entries = list(listing)
    except OSError as error:
        raise _unlistable(folder, error) from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path, named_as_audio = folder / entry.name, suffix_of(entry.name) in AUDIO_SUFFIXES
        try:
            is_folder = entry.is_dir()
        except OSError as error:
            # A row will say why. Under another name it may be a folder, unless there is nothing at all.
            if not named_as_audio and error.errno not in _LEADS_NOWHERE:
                raise _unlistable(path, error) from error
            is_folder = False
        if is_folder:
            _walk(path, (*above, here), found)
        elif named_as_audio:
            # Not asked whether it is a file: a link that leads nowhere is a failed row, and no silent gap.
            found.append(path.as_posix())


def _unlistable(folder: Path, error: OSError) -> ManifestError:
    return ManifestError(f"{folder}: the folder cannot be listed: {error.strerror}")


def expand_glob(pattern: str) -> list[str]:
    """What a shell would make of `pattern`, in code-point order; `**` crosses folders.

    A pattern with `**` gives files only: the folders it passes through are not inputs themselves.

    Raises:
        ManifestError: nothing matches, or a folder that it leads through cannot be listed or entered.
    """
    _check_passage(pattern)
    matches = sorted(set(glob.glob(pattern, recursive=True)))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if "**" in pattern:
        matches = [path for path in matches if not Path(path).is_dir()]
    if not matches:
        raise ManifestError(f"{pattern}: no file matches this pattern (current folder: {Path.cwd()})")
    return matches


def _check_passage(pattern: str) -> None:
    """Raise ManifestError for a folder that `glob` would pass over in silence, recordings and all."""
    parts = pattern.split("/")
    for at, part in enumerate(parts):
        # What `**` enters is looked at with the part behind it, where there is one.
        if part == "**" and at + 1 < len(parts):
            continue
        is_listed = glob.has_magic(part) or (at > 0 and parts[at - 1] == "**")
        above = "/".join(parts[: at + (part == "**")])
        for folder in glob.glob(f"{above}/", recursive=True) if at or above else [""]:  # noqa: PTH207
            try:
                if is_listed:
                    os.scandir(folder or ".").close()
                if part and not glob.has_magic(part):
                    os.lstat(folder + part)
            except OSError as error:
                if error.errno not in (*_LEADS_NOWHERE, errno.ENOENT):
                    raise _unlistable(Path(folder), error) from error
