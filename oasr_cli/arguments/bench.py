"""What is measured, how often, and where the report goes."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Benchmark"

BenchInputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="What `oasr transcribe` takes; with --compare, two files that --json wrote.",
        show_default=False,
    ),
]
BatchSizes = Annotated[
    str,
    typer.Option(
        "--batch-size",
        metavar="N[,N...]",
        help="Most rows in one micro-batch; several sizes are measured one after another.",
        rich_help_panel=_PANEL,
    ),
]
Repeat = Annotated[
    int, typer.Option(metavar="N", help="Passes over the list that are measured.", rich_help_panel=_PANEL)
]
Warmup = Annotated[
    int, typer.Option(metavar="N", help="Passes over the list before them.", rich_help_panel=_PANEL)
]
Csv = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Append a line a batch size to a CSV file.", rich_help_panel=_PANEL),
]
Html = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the report as one HTML page.", rich_help_panel=_PANEL),
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        help="Measure nothing: print the ratios of two reports, the second over the first.",
        rich_help_panel=_PANEL,
    ),
]
AllowDifferent = Annotated[
    bool,
    typer.Option(
        "--allow-different",
        help="Compare reports of different lists or models too; the output says that they are.",
        rich_help_panel=_PANEL,
    ),
]
