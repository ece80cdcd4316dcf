"""What the user names on the command line → the reader for it."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from oasr.errors import ManifestError, OptionsError
from oasr.manifest import paths
from oasr.manifest.files import EmptyFolderReader, FileReader
from oasr.manifest.inputs import InputList
from oasr.manifest.jsonl import JsonlReader
from oasr.manifest.kaldi import KaldiReader
from oasr.manifest.lines import LineFile, spool
from oasr.manifest.reader import Reader

STDIN = "-"


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How inputs are read.

    Attributes:
        audio_root: folder for relative paths that do not exist beside their manifest.
        allow_pipes: let `wav.scp` rows name commands (`cmd |`) to be run.
        shard: (i, n) keeps the rows i, i + n, i + 2n, ...; i counts from 0.
    """

    audio_root: str | None = None
    allow_pipes: bool = False
    shard: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Raise OptionsError for a folder that is none, or a shard that no list could have."""
        if self.audio_root is not None and not Path(self.audio_root).is_dir():
            raise OptionsError(f"audio root: expected a folder, found {self.audio_root!r}")
        if self.shard is not None and not 0 <= self.shard[0] < self.shard[1]:
            i, n = self.shard
            raise OptionsError(f"shard: expected I/N with 0 <= I < N, found {i}/{n}")

    def resolver(self, *bases: str) -> paths.Resolver:
        """Relative paths are looked for in the first of `bases`, the audio root, the other bases."""
        roots = (bases[0], *([self.audio_root] if self.audio_root else []), *bases[1:])
        return paths.Resolver(tuple(dict.fromkeys(roots)))


def open_inputs(inputs: Sequence[str], options: InputOptions | None = None) -> InputList:
    """Open recordings, folders, globs, JSONL manifests, Kaldi data folders and `-` as one list.

    Only the kind of each input is found out (and `-` is read to its end, folders are listed);
    call `InputList.check_ids` before the work.

    Raises:
        ManifestError: an input does not exist, cannot be read, or stands for no recording.
    """
    options = options or InputOptions()
    if not inputs:
        raise ManifestError("no input given; name a recording, a folder, a manifest, or - for JSONL on stdin")
    if list(inputs).count(STDIN) > 1:
        raise ManifestError("- (JSONL on stdin) can be given once only")
    readers = [reader for given in inputs for reader in _open(given, options)]
    names = Counter(reader.name for reader in readers)
    for reader in readers:
        if names[reader.name] > 1:  # two files called dev.jsonl: ids of unreadable rows must differ
            reader.name = reader.long_name
    return InputList(readers, options.shard)


def _open(given: str, options: InputOptions) -> Iterator[Reader]:
    if given == STDIN:
        if sys.stdin is None:
            raise ManifestError("- means JSONL on stdin, and stdin is closed")
        lines = LineFile("<stdin>", spool(sys.stdin.buffer, "stdin"))
        yield JsonlReader(lines, options.resolver(""), "stdin")
    elif paths.is_glob(given):
        for match in paths.expand_glob(given):
            yield _open_path(match, options, from_glob=True)
    else:
        yield _open_path(given, options)


def _open_path(given: str, options: InputOptions, from_glob: bool = False) -> Reader:
    path = Path(given).as_posix()
    try:
        mode = os.stat(given).st_mode  # noqa: PTH116 - Path("") would be the current folder
    except (OSError, ValueError) as error:
        return _open_missing(given, path, error)
    if stat.S_ISDIR(mode):
        return _open_folder(path, options, from_glob)
    name = Path(path).name
    if not stat.S_ISREG(mode):  # <(command) of a shell: a manifest that can be read once
        return JsonlReader(_spooled(path), options.resolver(""), name)
    if name == "wav.scp":
        raise ManifestError(f"{given}: give the folder that holds it: {Path(path).parent}")
    if paths.looks_like_manifest(path):
        return JsonlReader(LineFile(path), options.resolver(_parent(path)), name)
    return FileReader(path, [path])


def _open_missing(given: str, path: str, error: Exception) -> Reader:
    """A recording that is not there fails alone, as a row; a list or folder that is not there, the run."""
    # A ValueError is a NUL in the name, and a slash at its end means a folder: no recording has either.
    # What is no audio by its name may still be a link that leads nowhere: it fails as a row, too.
    nameable = isinstance(error, OSError) and not given.endswith("/")
    if nameable and (paths.suffix_of(path) in paths.AUDIO_SUFFIXES or os.path.lexists(given)):
        return FileReader(path, [path])
    why = error.strerror if isinstance(error, OSError) else str(error)
    raise ManifestError(f"{given!r}: expected a recording, folder, glob or manifest: {why}") from error


def _open_folder(folder: str, options: InputOptions, from_glob: bool) -> Reader:
    # A link that leads nowhere counts too: a table that is missing says more than recordings that are.
    if os.path.lexists(f"{folder}/wav.scp"):
        # Kaldi's recipes write paths that begin where the recipe runs: the current folder counts, last.
        return KaldiReader(folder, options.resolver(folder, ""), options.allow_pipes)
    files = paths.list_folder(folder)
    if files:
        return FileReader(folder, files)
    if from_glob:
        return EmptyFolderReader(folder)
    lists = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in paths.MANIFEST_SUFFIXES)
    hint = f"; to use the manifest in it, give {lists[0]}" if lists else ""
    known = " ".join(sorted(paths.AUDIO_SUFFIXES))
    raise ManifestError(f"{folder}: no recording in this folder or below (looked for {known}){hint}")


def _spooled(path: str) -> LineFile:
    try:
        with Path(path).open("rb") as stream:
            return LineFile(path, spool(stream, path))
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from error


def _parent(path: str) -> str:
    """The folder of `path`, "" for a bare name, so that relative paths stay as the manifest writes them."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else "")
