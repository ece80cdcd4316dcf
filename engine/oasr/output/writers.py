"""The output formats: what a writer is, and the table of them.

A new format is one file with one class and one line here, or an installed package with an entry point
in the group `oasr.writers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from oasr.errors import OutputError
from oasr.output.cue_rules import WriterSettings
from oasr.registry import Registry
from oasr.types import RequestOutput


class Writer(Protocol):
    """Renders results in one format. Made once a run; holds no state between rows.

    A writer is made without arguments, or, when its class has `configured(settings) -> Writer`, by
    that: it is how the flags about subtitles (`WriterSettings`) reach a format.

    Attributes:
        scope: "utterance" = one file for each transcribed row, named by its id; "run" = one file for
            the whole list, written when the run ends: in manifest order, unless it is a SortedWriter.
        suffix: what follows the id in the file name (`.txt`), or the whole file name for scope "run".
        word_times: may be left out; "wanted" = the run asks for word times where the decode family has
            them, "needed" = a run that cannot have them is refused.
        speech: may be left out; "needed" = a run without a voice activity detector is refused.
        highlights: may be left out; True = `WriterSettings.highlight_words` has an effect.
    """

    scope: Literal["utterance", "run"]
    suffix: str

    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """The text for one row.

        Args:
            row: the result row as written to results.jsonl. For scope "run" failures come here too
                (`error` in row); return "" to leave one out.
            output: the engine's result with its segments; None when only the row is at hand (always for
                scope "run", and for a format that is first asked for when a run is resumed).
        """
        ...


@runtime_checkable
class SortedWriter(Protocol):
    """A writer of scope "run" whose file is sorted. Its failed rows are left out."""

    def place(self, row: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
        """Where the row's text stands in the file, and whose place that is.

        Places are in code-point order (in UTF-8: byte order). Rows of one place must be of one owner:
        two recordings under one name would become one. Needs the row's own keys and id only.

        Raises:
            OutputError: the format has no way to write the row's name.
        """
        ...

    def merge(self, texts: list[str]) -> str:
        """The texts of all rows of one place, in manifest order, as one."""
        ...


WriterFactory: TypeAlias = Callable[[], Writer]

WRITERS: Registry[WriterFactory] = Registry(
    "output format",
    "oasr.writers",
    {
        "ctm": "oasr.output.ctm:CtmWriter",
        "json": "oasr.output.json:WhisperJsonWriter",
        "jsonl": "oasr.output.results_file:ResultsWriter",
        "kaldi": "oasr.output.kaldi_text:KaldiTextWriter",
        "rttm": "oasr.output.rttm:RttmWriter",
        "srt": "oasr.output.subtitles:SrtWriter",
        "tsv": "oasr.output.tsv:TsvWriter",
        "txt": "oasr.output.text:TextWriter",
        "vtt": "oasr.output.subtitles:VttWriter",
    },
)


def build_writers(formats: Iterable[str], settings: WriterSettings | None = None) -> dict[str, Writer]:
    """Name → writer for the named formats, each once; `jsonl` is always among them.

    Raises:
        OptionsError: an unknown format; the message lists the known ones.
    """
    writers = {}
    for name in dict.fromkeys(["jsonl", *formats]):
        factory = WRITERS.get(name)
        configured = getattr(factory, "configured", None)
        writers[name] = configured(settings or WriterSettings()) if configured else factory()
    return writers


def render(name: str, writer: Writer, row: Mapping[str, Any], output: RequestOutput | None) -> bytes:
    """What `writer` makes of one row, as UTF-8.

    Raises:
        OutputError: the writer failed; the message names the format and the row.
    """
    try:
        # Text may hold half characters, from a file name that is not UTF-8; they must not stop a run.
        return writer.render(row, output).encode("utf-8", "replace")
    except Exception as error:
        reason = str(error) if isinstance(error, OutputError) else f"{type(error).__name__}: {error}"
        raise OutputError(
            f"output format {name!r} cannot write the row {row.get('id')!r}: {reason}"
        ) from error
