"""Which destination a run has: a folder, JSON lines or a document on stdout, or lines at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from oasr.errors import OptionsError, OutputError
from oasr.types import RequestOutput

from oasr_cli import console
from oasr_cli.console import printable
from oasr_cli.folder_sink import FolderSink
from oasr_cli.settings import Job, RunOptions
from oasr_cli.sink import Record, Row, Sink
from oasr_cli.tally import clock_time

if TYPE_CHECKING:
    from oasr.manifest import InputList
    from oasr.output.writers import Writer


def choose(job: Job, writers: Mapping[str, Writer], inputs: InputList) -> Sink:
    """The sink that the job asks for; a folder is checked and locked now.

    Raises:
        OptionsError: the folder cannot be used.
    """
    run = job.run
    if run.output_dir is not None:
        return FolderSink(job, writers, inputs.sources)
    if files := _documents(run):
        return DocumentSink(files[0], writers[files[0]])
    # Who asks for jsonl by name gets it at a terminal too.
    if console.stdout_is_terminal() and "jsonl" not in run.formats:
        return TerminalSink()
    return JsonLinesSink()


def check_stdout(run: RunOptions, inputs: InputList) -> None:
    """Refuse documents for several recordings where there is no folder for them.

    Raises:
        OptionsError: as said.
    """
    files = _documents(run) if run.output_dir is None else []
    # Last: rows are counted by reading the list.
    if files and (run.channel == "split" or inputs.count() > 1):
        raise OptionsError(
            f"--format {files[0]}: stdout takes the document of one recording, and there may be several: "
            "give --output-dir, the folder for their files"
        )


def _documents(run: RunOptions) -> list[str]:
    """The formats asked for that are no lines of a list."""
    return [name for name in run.formats if name != "jsonl"]


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


class DocumentSink(Sink):
    """What one format makes of the only recording, on stdout; a recording that fails leaves nothing there."""

    def __init__(self, name: str, writer: Writer) -> None:
        """Stdout is open already."""
        self._name, self._writer, self._written = name, writer, False
        self.on_terminal = console.stdout_is_terminal()

    @property
    def where(self) -> str:
        """See JsonLinesSink."""
        return "" if self.on_terminal else "stdout"

    def write(self, row: Row, record: Record, output: RequestOutput) -> None:
        """See Sink."""
        from oasr.output.writers import render

        if self._written:
            raise OutputError(
                f"stdout: it holds the {self._name} of one recording, and {row.id!r} is a second one "
                "(a row may ask for its channels to be split): give --output-dir"
            )
        self._written = True
        if "error" not in record:
            console.result_bytes(render(self._name, self._writer, record, output))


class TerminalSink(Sink):
    """A line a row for a person, with what was asked for beyond the text indented below it.

    A long recording has a line for each window instead, with the time when it begins, as they are finished.
    """

    on_terminal = True

    def __init__(self) -> None:
        """Nothing has been shown yet."""
        self._shown: dict[str, int] = {}

    def part(self, row: Row, output: RequestOutput) -> None:
        """See Sink."""
        self._shown[row.id] = self._shown.get(row.id, 0) + len(output.segments)
        for start, _, text in output.segments:
            line = f"  {clock_time(start)}  {printable(text)}"
            console.styled_result((printable(row.id), "bold"), line)

    def write(self, row: Row, record: Record, output: RequestOutput) -> None:
        """See Sink."""
        if "error" in record:
            error = record["error"]
            console.styled_result(
                (printable(row.id), "bold"), f"  {error['stage']}: {printable(error['message'])}", "red"
            )
            return
        if (shown := self._shown.pop(row.id, 0)) > 0:
            self.part(row, replace(output, segments=output.segments[shown:]))
            # `part` has counted these as well, and nothing more comes of the row.
            del self._shown[row.id]
        else:
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
