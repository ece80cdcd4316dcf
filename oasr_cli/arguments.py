"""Every flag, defined once as an Annotated alias; commands choose from these."""

from __future__ import annotations

from typing import Annotated

import typer
from oasr.config import DTYPES

_MODEL, _DECODING, _INPUT = "Model", "Decoding", "Input"
_OUTPUT, _SPEED = "Output", "Speed and memory"

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Audio file, folder (recursive), glob, JSONL manifest, Kaldi data folder, - (JSONL on stdin).",
        show_default=False,
    ),
]

# Model -------------------------------------------------------------------------------------------

Model = Annotated[
    str,
    typer.Option(
        metavar="NAME|DIR|HUB_ID",
        help="Catalog name (see `oasr models list`), checkpoint folder or file, or hub id.",
        rich_help_panel=_MODEL,
    ),
]
Device = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda[:N]", help="Where to run.", rich_help_panel=_MODEL)
]
Dtype = Annotated[
    str,
    typer.Option(
        metavar="|".join(DTYPES),
        help="Compute type; auto takes the fastest that keeps the word error rate on the device.",
        rich_help_panel=_MODEL,
    ),
]
DecodeMethod = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Decode family (see `oasr families`); the model's own when left out.",
        rich_help_panel=_MODEL,
    ),
]
DecoderType = Annotated[
    str | None,
    typer.Option(
        metavar="ctc_cuda|ctc_wfst", help="Which decoder `--decode-method ctc` means.", rich_help_panel=_MODEL
    ),
]
DecodeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="One option of the decode family; repeatable.", rich_help_panel=_MODEL
    ),
]

# Decoding ----------------------------------------------------------------------------------------

Language = Annotated[
    str | None,
    typer.Option(
        metavar="CODE",
        help="Spoken language, such as en; detected when left out. A manifest row may say otherwise.",
        rich_help_panel=_DECODING,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="transcribe|translate",
        help="What to do with the speech. A manifest row may say otherwise.",
        rich_help_panel=_DECODING,
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Text that the speech is taken to follow: names, spelling. A manifest row may say otherwise.",
        rich_help_panel=_DECODING,
    ),
]
WordTimestamps = Annotated[
    bool,
    typer.Option(
        "--word-timestamps/--no-word-timestamps",
        show_default=False,
        help="Start, end and confidence of every word.",
        rich_help_panel=_DECODING,
    ),
]
NBest = Annotated[int, typer.Option(metavar="N", help="Hypotheses for each row.", rich_help_panel=_DECODING)]
MaxNewTokens = Annotated[
    int | None,
    typer.Option(metavar="N", help="Longest transcript of one window, in tokens.", rich_help_panel=_DECODING),
]
Temperature = Annotated[
    float,
    typer.Option(
        metavar="T", help="0 takes the likeliest token; above 0 samples.", rich_help_panel=_DECODING
    ),
]
TopK = Annotated[
    int,
    typer.Option(
        metavar="N", help="Sample among the N likeliest tokens; 0 = all.", rich_help_panel=_DECODING
    ),
]
TopP = Annotated[
    float,
    typer.Option(
        metavar="P",
        help="Sample among the likeliest tokens that hold P of the mass.",
        rich_help_panel=_DECODING,
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the sampling.", rich_help_panel=_DECODING)]

# Input -------------------------------------------------------------------------------------------

Channel = Annotated[
    str,
    typer.Option(
        metavar="mix|N|split",
        help="Average the channels, take channel N (from 0), or transcribe each one as a row of its own.",
        rich_help_panel=_INPUT,
    ),
]
AudioRoot = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where relative paths are looked for when they are not beside the manifest.",
        rich_help_panel=_INPUT,
    ),
]
AllowPipes = Annotated[
    bool,
    typer.Option(
        "--allow-pipes/--no-allow-pipes",
        show_default=False,
        help="Run the shell commands (`cmd |`) of a wav.scp; only for lists you trust.",
        rich_help_panel=_INPUT,
    ),
]

# Output ------------------------------------------------------------------------------------------

OutputDir = Annotated[
    str | None,
    typer.Option(
        "--output-dir",
        "-o",
        metavar="DIR",
        help="Folder for the results; without it rows go to stdout.",
        rich_help_panel=_OUTPUT,
    ),
]
Format = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        "-f",
        metavar="NAME[,NAME...]",
        help="jsonl (results.jsonl, always written), json or txt (one file a row); repeatable.",
        rich_help_panel=_OUTPUT,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume",
        show_default=False,
        help="Go on in an output folder: rows that are written already are skipped.",
        rich_help_panel=_OUTPUT,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite/--no-overwrite",
        show_default=False,
        help="Replace earlier results.",
        rich_help_panel=_OUTPUT,
    ),
]
Wer = Annotated[
    bool,
    typer.Option(
        "--wer/--no-wer",
        show_default=False,
        help="Score against the manifest's own text, row by row and in the summary.",
        rich_help_panel=_OUTPUT,
    ),
]
ReferenceField = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Manifest key that holds the reference for --wer (default: text).",
        rich_help_panel=_OUTPUT,
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Progress on stderr: a bar on a terminal (the default there), else a line now and then.",
        show_default=False,
        rich_help_panel=_OUTPUT,
    ),
]
LogLevel = Annotated[
    str,
    typer.Option(
        metavar="debug|info|warning|error",
        help="What the libraries may say; debug also shows where an error came from.",
        rich_help_panel=_OUTPUT,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]

# Speed and memory --------------------------------------------------------------------------------

BatchSize = Annotated[
    int, typer.Option(metavar="N", help="Most rows in one micro-batch.", rich_help_panel=_SPEED)
]
BatchSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Most padded seconds of audio in one micro-batch.", rich_help_panel=_SPEED
    ),
]
Workers = Annotated[
    int, typer.Option(metavar="N", help="Threads that read audio ahead.", rich_help_panel=_SPEED)
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Threads that compute on a CPU; all cores when left out.", rich_help_panel=_SPEED
    ),
]
