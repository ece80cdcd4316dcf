"""How much is done at once."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Speed and memory"

BatchSize = Annotated[
    int, typer.Option(metavar="N", help="Most rows in one micro-batch.", rich_help_panel=_PANEL)
]
BatchSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Most padded seconds of audio in one micro-batch.", rich_help_panel=_PANEL
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Threads that read audio ahead; 2 when left out, or up to 14 for each GPU of a Ray cluster.",
        rich_help_panel=_PANEL,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Threads that compute on a CPU; when left out all cores, or an engine's share of a Ray cluster.",
        rich_help_panel=_PANEL,
    ),
]
