"""Where rows come from."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Input"

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Audio file, folder (recursive), glob, JSONL manifest, Kaldi data folder, - (JSONL on stdin).",
        show_default=False,
    ),
]
Channel = Annotated[
    str,
    typer.Option(
        metavar="mix|N|split",
        help="Average the channels, take channel N (from 0), or transcribe each one as a row of its own.",
        rich_help_panel=_PANEL,
    ),
]
Vad = Annotated[
    str,
    typer.Option(
        metavar="pauses|silero|energy|none",
        help="How recordings are cut into windows: pauses = all of it, cut where the speaker pauses; silero "
        "(a network, extra `vad`) and energy leave out what is no speech; none = whole, or an error row.",
        rich_help_panel=_PANEL,
    ),
]
MaxWindow = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="Longest window in seconds; what the model takes when left out, which is also the most.",
        rich_help_panel=_PANEL,
    ),
]
AudioRoot = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where relative paths are looked for when they are not beside the manifest.",
        rich_help_panel=_PANEL,
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        help="Only the rows I, I + N, I + 2N, ... of the list (I from 0); `oasr merge` joins the results.",
        rich_help_panel=_PANEL,
    ),
]
AllowPipes = Annotated[
    bool,
    typer.Option(
        "--allow-pipes/--no-allow-pipes",
        show_default=False,
        help="Run the shell commands (`cmd |`) of a wav.scp; only for lists you trust.",
        rich_help_panel=_PANEL,
    ),
]
