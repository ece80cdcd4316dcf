"""Plain transcripts, one utterance a line: Kaldi `text` (`id words`) and NIST sclite `trn` (`words (id)`)."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oasr.errors import ManifestError
from oasr.manifest.lines import LineFile

TRN_SUFFIX = ".trn"
# ASCII white space alone, which is what a Kaldi list to be transcribed is split at: ids may hold any other.
_BLANKS = re.compile(r"\s+", re.ASCII)
_TRN_LINE = re.compile(r"(.*?)\s*\(([^()\s]+)\)", re.ASCII)
_TRN_COMMENT = ";;"
_TRN_ALTERNATIVES = re.compile(r"\{.*/.*\}")


class TextLine(NamedTuple):
    """One utterance: its id, its words as written, and where the line stands."""

    id: str
    text: str
    origin: str


def read_text_lines(lines: LineFile) -> Iterator[TextLine]:
    """The utterances of a plain transcript file, whichever of the two forms it has.

    A file called `*.trn` is a trn; so is any other in which every line ends with an id in brackets, which in
    a Kaldi file would be an annotation after every single utterance.

    Raises:
        ManifestError: not UTF-8, or a trn line without an id or with alternatives (`{ a / b }`).
    """
    # Held whole: the last line may decide how the first one is to be read.
    placed = [(f"{lines.path}:{number}", _decoded(lines, number, line)) for number, line in lines.numbered()]
    spoken = [(origin, line) for origin, line in placed if not line.startswith(_TRN_COMMENT)]
    is_trn = Path(lines.path).suffix.lower() == TRN_SUFFIX
    if is_trn or all(_TRN_LINE.fullmatch(line) for _, line in spoken):
        yield from (_trn(line, origin) for origin, line in spoken)
    else:
        yield from (_kaldi(line, origin) for origin, line in placed)


def read_table(lines: LineFile) -> dict[str, str]:
    """Key → value of a Kaldi side table such as `utt2spk`.

    Raises:
        ManifestError: not UTF-8, or a key twice, even with one value, as for a list to be transcribed.
    """
    found: dict[str, TextLine] = {}
    for number, raw in lines.numbered():
        line = _kaldi(_decoded(lines, number, raw), f"{lines.path}:{number}")
        if (first := found.setdefault(line.id, line)) is not line:
            raise ManifestError(
                f"two lines have the id {line.id!r}: {first.origin} and {line.origin}; keep one"
            )
    return {line.id: line.text for line in found.values()}


def _kaldi(line: str, origin: str) -> TextLine:
    """`id` alone is an utterance without words."""
    name, *words = _BLANKS.split(line, maxsplit=1)
    return TextLine(name, words[0] if words else "", origin)


def _trn(line: str, origin: str) -> TextLine:
    match = _TRN_LINE.fullmatch(line)
    if match is None:
        raise ManifestError(f"{origin}: expected words and then an id in brackets, found {line[:60]!r}")
    if _TRN_ALTERNATIVES.search(match[1]):
        raise ManifestError(
            f"{origin}: alternatives in braces are not understood and would count as words; keep one of them"
        )
    return TextLine(match[2], match[1], origin)


def _decoded(lines: LineFile, number: int, line: bytes) -> str:
    try:
        return line.decode().strip(string.whitespace)
    except UnicodeDecodeError as error:
        raise ManifestError(
            f"{lines.path}:{number}: expected UTF-8, found byte 0x{line[error.start]:02x} "
            f"at byte {error.start + 1} of the line"
        ) from error
