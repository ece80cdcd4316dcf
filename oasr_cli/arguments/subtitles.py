"""What subtitle cues look like."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Subtitles (srt, vtt, tsv)"

MaxLineWidth = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Columns of a line, full-width characters taking two; by script when left out: "
        "42, Chinese and Korean 32, Japanese 26.",
        rich_help_panel=_PANEL,
    ),
]
MaxLineCount = Annotated[
    int | None, typer.Option(metavar="N", help="Lines of a cue (default 2).", rich_help_panel=_PANEL)
]
MinCueDuration = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="Least seconds of a cue, where the next one permits it (default 0.833).",
        rich_help_panel=_PANEL,
    ),
]
MaxCueDuration = Annotated[
    float | None, typer.Option(metavar="S", help="Most seconds of a cue (default 7).", rich_help_panel=_PANEL)
]
CuePause = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Seconds of silence that always end a cue (default 1).", rich_help_panel=_PANEL
    ),
]
CueGap = Annotated[
    float | None,
    typer.Option(metavar="S", help="Least seconds between two cues (default 0.083).", rich_help_panel=_PANEL),
]
CloseCueGap = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="Close a shorter gap between two cues down to --cue-gap (default 0.5).",
        rich_help_panel=_PANEL,
    ),
]
HighlightWords = Annotated[
    bool,
    typer.Option(
        "--highlight-words/--no-highlight-words",
        show_default=False,
        help="Tag each word with its time in vtt, so that viewers can show which one is spoken. "
        "srt has no such tags and stays as it is.",
        rich_help_panel=_PANEL,
    ),
]
