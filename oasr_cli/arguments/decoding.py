"""What every row is decoded for."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Decoding"

Language = Annotated[
    str | None,
    typer.Option(
        metavar="CODE",
        help="Spoken language, such as en; detected when left out, unless the checkpoint's own settings name "
        "one. A manifest row may say otherwise.",
        rich_help_panel=_PANEL,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="transcribe|translate",
        help="What to do with the speech. A manifest row may say otherwise.",
        rich_help_panel=_PANEL,
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Text that the speech is taken to follow: names, spelling. A manifest row may say otherwise.",
        rich_help_panel=_PANEL,
    ),
]
WordTimestamps = Annotated[
    bool | None,
    typer.Option(
        "--word-timestamps/--no-word-timestamps",
        show_default=False,
        help="Start, end and confidence of every word; formats that are made of them ask by themselves.",
        rich_help_panel=_PANEL,
    ),
]
NBest = Annotated[int, typer.Option(metavar="N", help="Hypotheses for each row.", rich_help_panel=_PANEL)]
MaxNewTokens = Annotated[
    int | None,
    typer.Option(metavar="N", help="Longest transcript of one window, in tokens.", rich_help_panel=_PANEL),
]
Temperature = Annotated[
    float,
    typer.Option(metavar="T", help="0 takes the likeliest token; above 0 samples.", rich_help_panel=_PANEL),
]
TopK = Annotated[
    int,
    typer.Option(metavar="N", help="Sample among the N likeliest tokens; 0 = all.", rich_help_panel=_PANEL),
]
TopP = Annotated[
    float,
    typer.Option(
        metavar="P",
        help="Sample among the likeliest tokens that hold P of the mass.",
        rich_help_panel=_PANEL,
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the sampling.", rich_help_panel=_PANEL)]
