"""The model and how it computes."""

from __future__ import annotations

from typing import Annotated

import typer
from oasr.config import DTYPES

_PANEL = "Model"

Model = Annotated[
    str,
    typer.Option(
        metavar="NAME|DIR|HUB_ID",
        help="Catalog name (see `oasr models list`), checkpoint folder or file, or hub id.",
        rich_help_panel=_PANEL,
    ),
]
Device = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda[:N]", help="Where to run.", rich_help_panel=_PANEL)
]
Dtype = Annotated[
    str,
    typer.Option(
        metavar="|".join(DTYPES),
        help="Compute type; auto takes the fastest that keeps the word error rate on the device.",
        rich_help_panel=_PANEL,
    ),
]
DecodeMethod = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Decode family (see `oasr families`); the model's own when left out.",
        rich_help_panel=_PANEL,
    ),
]
DecoderType = Annotated[
    str | None,
    typer.Option(
        metavar="ctc_cuda|ctc_wfst",
        help="Which decoder `--decode-method ctc` means; ctc_wfst needs a package that brings it.",
        rich_help_panel=_PANEL,
    ),
]
DecodeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="One option of the decode family; repeatable.", rich_help_panel=_PANEL
    ),
]
