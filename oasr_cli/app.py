"""The `oasr` command: its table of commands, and `main`, where every error ends as a message and a code."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from oasr_cli import console
from oasr_cli.commands import bench, doctor, families, gate, merge, models, score, transcribe
from oasr_cli.help import GroupedCommand


def _dashes(name: str) -> str:
    """Take `--output_dir` for `--output-dir`: the spelling that users of other tools know."""
    return name.replace("_", "-")


app = typer.Typer(
    name="oasr",
    help="Turn lists of recordings into text.",
    no_args_is_help=True,
    add_completion=False,
    # Rich would cost its import for every `--help`; errors are for `main`, which words them itself.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={
        "token_normalize_func": _dashes,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
)
app.command("transcribe", cls=GroupedCommand)(transcribe.transcribe)
app.command("score", cls=GroupedCommand)(score.score)
app.command("merge", cls=GroupedCommand)(merge.merge)
app.command("bench", cls=GroupedCommand)(bench.bench)
app.command("gate", cls=GroupedCommand)(gate.gate)
app.add_typer(models.app, name="models")
app.command("doctor", cls=GroupedCommand)(doctor.doctor)
app.command("families", cls=GroupedCommand)(families.families)


def _print_version(wanted: bool) -> None:
    if wanted:
        from oasr import __version__

        console.result(f"oasr {__version__}")
        raise typer.Exit(0)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Turn lists of recordings into text."""


def main() -> NoReturn:
    """Console entry point. Never shows a bare traceback; exit codes are those of `console.ExitCode`."""
    # torch's OpenMP workers spin after each operation, on cores that the int16 kernels and the
    # readers could use; the variable is read when torch is first imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    console.open_closed_streams()
    try:
        app(prog_name="oasr")
    except BaseException as error:
        sys.exit(console.report(error))
    sys.exit(0)
