"""The output formats: what a writer is, and the table of them.

A new format is one file with one class and one line here, or an installed package with an entry point
in the group `oasr.writers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

from oasr.errors import OutputError
from oasr.registry import Registry
from oasr.types import RequestOutput


class Writer(Protocol):
    """Renders results in one format. Made once a run, without arguments; holds no state between rows.

    Attributes:
        scope: "utterance" = one file for each transcribed row, named by its id; "run" = one file for
            the whole list, in manifest order, written when the run ends.
        suffix: what follows the id in the file name (`.txt`), or the whole file name for scope "run".
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


WriterFactory: TypeAlias = Callable[[], Writer]

WRITERS: Registry[WriterFactory] = Registry(
    "output format",
    "oasr.writers",
    {
        "json": "oasr.output.json:WhisperJsonWriter",
        "jsonl": "oasr.output.results_file:ResultsWriter",
        "txt": "oasr.output.text:TextWriter",
    },
)


def build_writers(formats: Iterable[str]) -> dict[str, Writer]:
    """Name → writer for the named formats, each once; `jsonl` is always among them.

    Raises:
        OptionsError: an unknown format; the message lists the known ones.
    """
    return {name: WRITERS.get(name)() for name in dict.fromkeys(["jsonl", *formats])}


def render(name: str, writer: Writer, row: Mapping[str, Any], output: RequestOutput | None) -> bytes:
    """What `writer` makes of one row, as UTF-8.

    Raises:
        OutputError: the writer failed; the message names the format and the row.
    """
    try:
        return writer.render(row, output).encode("utf-8", "replace")
    except Exception as error:
        raise OutputError(
            f"output format {name!r} cannot write the row {row.get('id')!r}: {type(error).__name__}: {error}"
        ) from error
