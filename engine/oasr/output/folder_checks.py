"""Whether a folder may become, or go on being, the output of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from oasr.errors import OptionsError, OutputError
from oasr.output.append_file import AppendFile
from oasr.output.name_book import RECORD_NAME
from oasr.output.results_file import RESULTS_NAME, TEMPORARY_PREFIX, read_results


def check_protected(
    folder: Path, run_files: Iterable[str], protected: Iterable[str | os.PathLike[str]]
) -> None:
    """Refuse an output that is, or would replace, a file or folder that the run reads.

    Raises:
        OutputError: names the output and the input.
    """
    outputs = [folder, *(folder / name for name in run_files)]
    for source in map(Path, protected):
        for output in outputs:
            if _same(output, source):
                raise OutputError(
                    f"{output}: the output would replace {source}, which this run reads; "
                    "choose another output folder"
                )


def check_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse what is no folder, what is in use without a flag, and a results.jsonl that oasr did not write.

    Raises:
        OptionsError: `resume` and `overwrite` together.
        OutputError: the reason, and the flags or the folder to choose.
    """
    if resume and overwrite:
        raise OptionsError(
            "--resume and --overwrite exclude each other: go on with the old results, or drop them"
        )
    try:
        if not folder.exists():
            return
        if not folder.is_dir():
            raise OutputError(
                f"{folder}: expected a folder for the output, found a file; choose another name"
            )
        if not (resume or overwrite) and _holds_anything(folder):
            raise not_empty(folder)
        for name in (RESULTS_NAME, RECORD_NAME):
            _check_no_link(folder / name)
        if overwrite:
            _check_ours(folder / RESULTS_NAME)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be used for output: {error.strerror or error}") from error


def _check_no_link(path: Path) -> None:
    if path.is_symlink():
        raise OutputError(
            f"{path}: expected a file of oasr's own, found a link to {path.readlink()}, which would be "
            "written to; remove the link or choose another output folder"
        )


def not_empty(folder: Path) -> OutputError:
    """The refusal of a folder that holds something already."""
    return OutputError(
        f"{folder}: the output folder is not empty; give --resume to go on with an interrupted run, "
        "--overwrite to replace what oasr wrote there, or another folder"
    )


def clear_temporary(folder: Path) -> None:
    """Remove what a killed run left half-written beside the results."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*"):
        path.unlink(missing_ok=True)


def _holds_anything(folder: Path) -> bool:
    """False also for what a run leaves that broke before its first row."""
    return any(
        not (path.name in (RESULTS_NAME, RECORD_NAME) and path.is_file() and path.stat().st_size == 0)
        for path in folder.iterdir()
    )


def _check_ours(results: Path) -> None:
    if not results.exists():
        return
    AppendFile(results).close()  # refused here, before any work, while another run has it
    try:
        for _ in islice(read_results(results), 1):
            pass
    except OutputError as error:
        raise OutputError(
            f"{results}: --overwrite replaces only results of oasr, and this file's first line is none "
            f"({error}); move it away or choose another folder"
        ) from None


def _same(one: Path, other: Path) -> bool:
    try:
        # By name, since an output need not exist yet; by file, since a hard link, or a file system that
        # ignores case, gives one file two names.
        return one.resolve() == other.resolve() or one.samefile(other)
    except OSError:
        return False
