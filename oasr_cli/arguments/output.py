"""Where results go and what is shown."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Output"

OutputDir = Annotated[
    str | None,
    typer.Option(
        "--output-dir",
        "-o",
        metavar="DIR",
        help="Folder for the results; without it rows go to stdout, or one recording in one --format.",
        rich_help_panel=_PANEL,
    ),
]
Format = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        "-f",
        metavar="NAME[,NAME...]",
        help="jsonl (results.jsonl, always written), json, txt, srt, vtt, tsv (one file a row), "
        "ctm, kaldi, rttm (one file for the list); repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume",
        show_default=False,
        help="Go on in an output folder: rows that are written already are skipped.",
        rich_help_panel=_PANEL,
    ),
]
ResumeAnyway = Annotated[
    bool,
    typer.Option(
        "--resume-anyway/--no-resume-anyway",
        show_default=False,
        help="Like --resume, although the list, the model or a flag is another one than before.",
        rich_help_panel=_PANEL,
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed/--no-retry-failed",
        show_default=False,
        help="Like --resume, and rows that failed before are tried again; --resume leaves them as they are.",
        rich_help_panel=_PANEL,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite/--no-overwrite",
        show_default=False,
        help="Replace earlier results.",
        rich_help_panel=_PANEL,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run/--no-dry-run",
        show_default=False,
        help="Write nothing: count rows, hours, formats and rows that would fail, and estimate the time.",
        rich_help_panel=_PANEL,
    ),
]
Wer = Annotated[
    bool,
    typer.Option(
        "--wer/--no-wer",
        show_default=False,
        help="Score against the manifest's own text, row by row and in the summary.",
        rich_help_panel=_PANEL,
    ),
]
ReferenceField = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Manifest key that holds the reference text (default: text).",
        rich_help_panel=_PANEL,
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Progress on stderr: a bar on a terminal (the default there), else a line now and then.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
LogLevel = Annotated[
    str,
    typer.Option(
        metavar="debug|info|warning|error",
        help="What the libraries may say; debug also shows where an error came from.",
        rich_help_panel=_PANEL,
    ),
]
ShardFolders = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR", help="Output folders of the shards of one list, in any order.", show_default=False
    ),
]
MergedDir = Annotated[
    str,
    typer.Option("--output-dir", "-o", metavar="DIR", help="Folder for the whole.", rich_help_panel=_PANEL),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
