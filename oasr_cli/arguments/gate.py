"""Which pinned error rates are checked, where their assets are, and what is written."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Gate"
ASSETS_VARIABLE = "OASR_SPEECH_DIR"

PinnedRates = Annotated[
    str,
    typer.Argument(metavar="FILE", help="The pinned error rates: ci/wer-reference.json.", show_default=False),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        help="Only the entries of this key or glob, such as 'tiny.en-*'; repeatable.",
        rich_help_panel=_PANEL,
    ),
]
AssetsRoot = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        envvar=ASSETS_VARIABLE,
        help="Where manifests and models are looked for that are not beside FILE.",
        rich_help_panel=_PANEL,
    ),
]
StrictAssets = Annotated[
    bool,
    typer.Option(
        "--strict-assets/--no-strict-assets",
        show_default=False,
        help="Fail when the model or manifest of an entry is absent.",
        rich_help_panel=_PANEL,
    ),
]
Update = Annotated[
    bool,
    typer.Option(
        "--update",
        help="Record what is measured in place of the records that differ.",
        rich_help_panel=_PANEL,
    ),
]
Why = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="The reason, kept in every record that --update changes.", rich_help_panel=_PANEL
    ),
]
JUnit = Annotated[
    str | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.", rich_help_panel="Output")
]
JsonReport = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write what --json prints to a file, beside the table.",
        rich_help_panel="Output",
    ),
]
