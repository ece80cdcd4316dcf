"""Which destination a run has: a folder, JSON lines on stdout, or lines for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from oasr.types import RequestOutput

from oasr_cli import console
from oasr_cli.console import printable
from oasr_cli.folder_sink import FolderSink
from oasr_cli.settings import RunOptions
from oasr_cli.sink import Record, Row, Sink


def choose(run: RunOptions, sources: Iterable[str]) -> Sink:
    """The sink that `run` asks for; a folder is checked and, unless it replaces results, opened now.

    Raises:
        OptionsError: the folder cannot be used, or a format is unknown.
    """
    if run.output_dir is not None:
        return FolderSink(run, sources)
    if console.stdout_is_terminal() and "jsonl" not in run.formats:
        return TerminalSink()
    return JsonLinesSink()


class JsonLinesSink(Sink):
    """One JSON object a line on stdout, in the order of the list, each flushed as it comes."""

    @property
    def where(self) -> str:
        """Stdout, which leads elsewhere unless it is a terminal."""
        return "" if self.on_terminal else "stdout"

    def __init__(self) -> None:
        """Stdout is open already."""
        self.on_terminal = console.stdout_is_terminal()

    def write(self, row: Row, record: Record, output: RequestOutput) -> None:
        """See Sink."""
        from oasr.output.jsonl import encode_line

        console.result_bytes(encode_line(record))


class TerminalSink(Sink):
    """A line a row for a person, with what was asked for beyond the text indented below it."""

    on_terminal = True

    def write(self, row: Row, record: Record, output: RequestOutput) -> None:
        """See Sink."""
        if "error" in record:
            error = record["error"]
            console.styled_result(
                (printable(row.id), "bold"), f"  {error['stage']}: {printable(error['message'])}", "red"
            )
            return
        console.styled_result((printable(row.id), "bold"), f"  {printable(record['pred_text'])}")
        for line in _details(record):
            console.styled_result(("", ""), f"    {line}", "dim")


def _details(record: Record) -> Iterable[str]:
    """Words, n-best and scores of one record."""
    for word in record.get("words", ()):
        yield f"{word['start']:9.2f} {word['end']:9.2f}  {printable(word['word'])}"
    for rank, entry in enumerate(record.get("nbest", ()), 1):
        yield f"{rank}.  {entry['score']}  {printable(entry['text'])}"
    for metric in ("wer", "cer"):
        if metric in record:
            score = record[metric]
            rate = "undefined" if score["rate"] is None else f"{score['rate']:.2f} %"
            counts = " ".join(
                f"{key[0].upper()} {score[key]}" for key in ("substitutions", "deletions", "insertions")
            )
            yield f"{metric.upper()} {rate} ({counts} N {score['reference_units']})"
    for warning in record.get("warnings", ()):
        yield f"warning: {printable(warning)}"
