"""Texts by id, for scoring: result rows, manifests with references, Kaldi `text`, sclite `trn`.

Unlike a list to be transcribed, such a file is whole or unusable: a line that cannot be read has no id to be
matched by, and leaving it out would change the score in silence. So every fault raises, naming the line.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from oasr.errors import ManifestError, ManifestRowError
from oasr.manifest import dialect
from oasr.manifest.json_line import parse_line
from oasr.manifest.lines import LineFile, spool
from oasr.manifest.paths import MANIFEST_SUFFIXES, suffix_of
from oasr.manifest.text_lines import TRN_SUFFIX, read_table, read_text_lines

RESULTS = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a file says about one id.

    Attributes:
        text: the recognised text; None where the row has none.
        reference: the true text; None where the row carries none.
        error: why there is no recognised text, where the row is a failed one.
        language: what the row names.
        row: the row's keys and values, to group by.
        origin: `file:line`.
    """

    id: str
    text: str | None = None
    reference: str | None = None
    error: str | None = None
    language: str | None = None
    row: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""


class TranscriptFile(NamedTuple):
    """One file that was read: what messages call it, and its transcripts by id, in the file's order."""

    path: str
    rows: dict[str, Transcript]


def read_hypotheses(path: str, reference_field: str | None = None) -> TranscriptFile:
    """Recognised texts: `results.jsonl` or a folder with one, a NeMo manifest, Kaldi `text`, `trn`, or `-`.

    Args:
        path: the file; `-` = standard input.
        reference_field: key of a JSON row's reference; None = `text` or `txt`.

    Raises:
        ManifestError: it cannot be read, is malformed, has no rows, has an id twice, or holds a JSON row
            with neither `pred_text` nor `error`.
    """
    found = _read(path, reference_field, plain="text")
    for row in found.rows.values():
        if row.text is None and row.error is None:
            raise ManifestError(
                f"{row.origin} (id={row.id}): expected pred_text or error, found the keys "
                f"{', '.join(row.row)}; has this list been transcribed?"
            )
    return found


def read_references(path: str, reference_field: str | None = None) -> TranscriptFile:
    """True texts: a JSONL manifest, Kaldi `text` or the data folder that holds one, `trn`, or `-`.

    Raises:
        ManifestError: it cannot be read, is malformed, has no rows, or has an id twice.
    """
    return _read(path, reference_field, plain="reference")


def _read(path: str, reference_field: str | None, plain: str) -> TranscriptFile:
    """`plain` names the field of Transcript that the text of a line without keys fills."""
    file = _file_of(path)
    lines = _lines_of(file)
    if _is_jsonl(lines):
        found = _json_rows(lines, reference_field)
    else:
        if reference_field is not None:
            raise ManifestError(f"{file}: has no keys, so --reference-field {reference_field} names nothing")
        found = _plain_rows(lines, plain, Path(path))
    rows: dict[str, Transcript] = {}
    for row in found:
        if row.id in rows:
            raise ManifestError(f"two rows have the id {row.id!r}: {rows[row.id].origin} and {row.origin}")
        rows[row.id] = row
    if not rows:
        raise ManifestError(f"no rows in {file}")
    return TranscriptFile(path, rows)


def _file_of(path: str) -> str:
    """The file to read: of a folder, the results in it, else the Kaldi `text`."""
    # Results first: a run's folder may hold the same texts as `text` too, without the failed rows.
    if path == "-" or not Path(path).is_dir():
        return path
    found = next((Path(path) / name for name in (RESULTS, "text") if (Path(path) / name).is_file()), None)
    if found is None:
        raise ManifestError(f"{path}: expected {RESULTS} or text in this folder, found neither")
    return str(found)


def _lines_of(path: str) -> LineFile:
    """Lines that can be read twice, also from standard input or a pipe."""
    if path == "-":
        return LineFile("<stdin>", spool(sys.stdin.buffer, "stdin"))
    try:
        if stat.S_ISREG(Path(path).stat().st_mode):
            return LineFile(path)
        with Path(path).open("rb") as stream:
            return LineFile(path, spool(stream, path))
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror or error}") from error


def _is_jsonl(lines: LineFile) -> bool:
    # A trn may begin with `{` too, which there opens alternatives.
    suffix = suffix_of(lines.path)
    first = next((line for _, line in lines.numbered()), b"")
    return suffix in MANIFEST_SUFFIXES or (suffix != TRN_SUFFIX and first.lstrip()[:1] == b"{")


def _json_rows(lines: LineFile, reference_field: str | None) -> Iterator[Transcript]:
    for number, line in lines.numbered():
        origin = f"{lines.path}:{number}"
        parsed = parse_line(line, origin)
        try:
            if parsed.problem:
                raise ManifestRowError(parsed.problem)
            yield _transcript(parsed.id, parsed.row, reference_field, origin)
        except ManifestRowError as error:
            raise ManifestError(f"{origin}: {error}") from error


def _transcript(name: str | None, row: Mapping[str, Any], field: str | None, origin: str) -> Transcript:
    error = row.get("error")
    return Transcript(
        id=name or dialect.made_id(dialect.read_place(row)),
        text=_string(row, "pred_text"),
        reference=dialect.read_text(row) if field is None else _string(row, field),
        error=None if error is None else str(error.get("message") if isinstance(error, dict) else error),
        language=next(filter(None, (_string(row, key) for key in dialect.LANGUAGE_KEYS)), None),
        row=row,
        origin=origin,
    )


def _string(row: Mapping[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise ManifestRowError(f"{key}: expected a string, found {dialect.brief(value)}")
    return value


def _plain_rows(lines: LineFile, plain: str, folder: Path) -> Iterator[Transcript]:
    """Lines of a Kaldi or trn file; what a data folder's tables say about them goes along."""
    # Nothing lies below a file, so only a folder brings tables.
    tables = {
        key: read_table(LineFile(str(folder / name)))
        for key, name in (("speaker", "utt2spk"), ("language", "utt2lang"))
        if (folder / name).is_file()
    }
    for name, text, origin in read_text_lines(lines):
        row = {"id": name} | {key: table[name] for key, table in tables.items() if name in table}
        values: dict[str, Any] = {plain: text}
        yield Transcript(name, language=row.get("language"), row=row, origin=origin, **values)
