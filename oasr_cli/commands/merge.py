"""`oasr merge`: the output folders of the shards of one list → one, in the order of the list."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from oasr.errors import OptionsError, OutputError

from oasr_cli import arguments as flag
from oasr_cli import console, settings
from oasr_cli.console import ExitCode

if TYPE_CHECKING:
    from oasr.output.cue_rules import WriterSettings


def merge(
    folders: flag.ShardFolders,
    output_dir: flag.MergedDir,
    format: flag.Format = None,
    overwrite: flag.Overwrite = False,
) -> None:
    """Join the results of `oasr transcribe --shard I/N` in the order of the list.

    Every shard must be there once, finished, and made from the same list with the same model and flags.
    Formats of the shards are written anew for the whole; --format adds others.

    Exit code: 0 all rows good, 1 the shards do not fit together, 2 usage, 3 some rows failed.
    """
    from oasr.output.run_folder import RunFolder
    from oasr.output.shards import check_formats, open_shards
    from oasr.output.shards import merge as join
    from oasr.output.writers import build_writers

    shards = open_shards(map(Path, folders))
    given = [name for shard in shards for name in shard.record["settings"].get("--format", ())]
    names = tuple(dict.fromkeys([*given, *settings.comma_list(format)]))
    # Any shard speaks for all about subtitles: `open_shards` has refused flags that differ.
    writers = build_writers(names, _writer_settings(shards[0].record["settings"]))
    try:
        check_formats(shards, writers)
    except OutputError as error:
        raise OptionsError(f"--format: {error}") from error
    try:
        into = RunFolder.open(output_dir, overwrite=overwrite, formats=writers, protected_paths=folders)
    except OutputError as error:
        raise OptionsError(f"--output-dir: {error}") from error
    with into, console.busy("merging"):
        counts = join(shards, into, shlex.join(["oasr", *sys.argv[1:]]), names)
    console.note(f"rows: {counts['ok']} ok, {counts['failed']} failed · {len(shards)} shards")
    console.note(f"results: {into.results_path}")
    if counts["failed"]:
        raise typer.Exit(ExitCode.PARTIAL if counts["ok"] else ExitCode.BROKEN)


def _writer_settings(recorded: Mapping[str, Any]) -> WriterSettings:
    """What the shards' flags about subtitles said."""
    from oasr.output.cue_rules import CueRules

    flags = {f.name: recorded.get("--" + f.name.replace("_", "-"), f.default) for f in fields(CueRules)}
    return settings.writer_settings(bool(recorded.get("--highlight-words")), **flags)
