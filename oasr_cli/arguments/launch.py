"""Several engines: which ones, and where."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Several engines"

Launcher = Annotated[
    str | None,
    typer.Option(
        metavar="local|ray",
        help="local: one engine here (the default). ray: engines on a Ray cluster (extra `ray`), each in a "
        "process of its own; the same rows come out.",
        rich_help_panel=_PANEL,
    ),
]
Devices = Annotated[
    str | None,
    typer.Option(
        metavar="all",
        help="Every GPU of this machine, an engine on each; means --launcher ray where there are several.",
        rich_help_panel=_PANEL,
    ),
]
NumGpus = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="With --launcher ray: engines on GPUs, one each; all GPUs of the cluster when left out.",
        rich_help_panel=_PANEL,
    ),
]
Actors = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="With --launcher ray: engines on CPUs; one for each machine when left out.",
        rich_help_panel=_PANEL,
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|auto",
        help="With --launcher ray: a cluster that runs already. When left out, what RAY_ADDRESS says, else "
        "this machine alone.",
        rich_help_panel=_PANEL,
    ),
]
