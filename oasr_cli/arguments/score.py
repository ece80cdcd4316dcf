"""What is scored against what, and what is shown of it."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Scoring"

Hypotheses = Annotated[
    list[str],
    typer.Argument(
        metavar="HYP [HYP2]",
        help="results.jsonl or its folder, NeMo manifest with pred_text, Kaldi text, trn, - (stdin).",
        show_default=False,
    ),
]
Ref = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|DIR",
        help="References: JSONL manifest, Kaldi text or data folder, trn; default: what the rows carry.",
        rich_help_panel=_PANEL,
    ),
]
ScoredField = Annotated[
    str | None,
    typer.Option(
        "--reference-field",
        metavar="KEY",
        help="Key of a row's reference (default: text).",
        rich_help_panel=_PANEL,
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="auto|wer|cer",
        help="Count words or characters; auto: characters for languages written without spaces.",
        rich_help_panel=_PANEL,
    ),
]
Normalizer = Annotated[
    str,
    typer.Option(
        metavar="auto|NAME",
        help="none, basic, english or chinese; auto: by the language of the row.",
        rich_help_panel=_PANEL,
    ),
]
TextLanguage = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="CODE",
        help="Language of all rows, whatever they say (default: what each row says).",
        rich_help_panel=_PANEL,
    ),
]
FailedRows = Annotated[
    str,
    typer.Option(
        "--failed",
        metavar="deletions|leave-out",
        help="Count a failed row as all deletions, or leave it out (of all systems).",
        rich_help_panel=_PANEL,
    ),
]
Bootstrap = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Draws of utterances behind the interval and the p-value; 0 = neither.",
        rich_help_panel=_PANEL,
    ),
]
DrawSeed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of the draws.", rich_help_panel=_PANEL)
]
By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY[,KEY...]",
        help="Also score by a key of the rows, such as speaker; repeatable.",
        rich_help_panel="Output",
    ),
]
Worst = Annotated[
    int,
    typer.Option(
        metavar="N", help="Show the N rows with the most errors, aligned.", rich_help_panel="Output"
    ),
]
