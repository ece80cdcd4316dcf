"""References and hypotheses brought together by id, with nothing left over on either side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oasr.errors import ManifestError

if TYPE_CHECKING:
    from oasr.manifest.transcripts import Transcript, TranscriptFile

_SHOWN_IDS = 100


@dataclass(frozen=True, slots=True)
class Sample:
    """One reference and what each system made of the recording.

    Attributes:
        hypotheses: one text a system; None where its row failed.
        keys: what the rows say besides, to group by.
    """

    id: str
    reference: str
    hypotheses: tuple[str | None, ...]
    language: str | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)


def match(
    hypotheses: Sequence[TranscriptFile], references: TranscriptFile | None, leave_out_failed: bool = False
) -> tuple[list[Sample], list[str]]:
    """Pair every reference with the hypothesis of the same id, in each file of `hypotheses`.

    Args:
        hypotheses: the systems; the samples come in the order of the first.
        references: the true texts; None = each file's rows carry their own.
        leave_out_failed: drop every row that failed in any system, so that all are scored on the same.

    Returns:
        The samples, and the ids that were left out.

    Raises:
        ManifestError: an id is missing or too many, a row has no reference, or two systems carry
            different references for one id; the ids are listed.
    """
    # A dict for its order: messages list ids as the files do.
    failed = {row.id: None for file in hypotheses for row in file.rows.values() if row.text is None}
    left_out = failed if leave_out_failed else {}
    base = references or hypotheses[0]
    for file in hypotheses:
        _check_ids(file, base, left_out)
    _check_references(hypotheses, references, left_out)
    ids = [name for name in hypotheses[0].rows if name not in left_out]
    return [_sample(name, hypotheses, base.rows[name]) for name in ids], list(left_out)


def id_list(ids: Iterable[str]) -> str:
    """Ids for a message: all of them, or the first hundred and how many more there are."""
    names = [name if name.isprintable() else repr(name) for name in ids]
    more = f" and {len(names) - _SHOWN_IDS} more" if len(names) > _SHOWN_IDS else ""
    return ", ".join(names[:_SHOWN_IDS]) + more


def _sample(name: str, hypotheses: Sequence[TranscriptFile], reference: Transcript) -> Sample:
    rows = [file.rows[name] for file in hypotheses]
    # One language a row for all systems, or a wrong guess of one would be scored by other rules.
    language = next((row.language for row in (reference, *rows) if row.language is not None), None)
    keys = {**rows[0].row, **reference.row}
    return Sample(name, reference.reference or "", tuple(row.text for row in rows), language, keys)


def _check_ids(file: TranscriptFile, base: TranscriptFile, left_out: Mapping[str, None]) -> None:
    missing = [name for name in base.rows if name not in file.rows and name not in left_out]
    extra = [name for name in file.rows if name not in base.rows and name not in left_out]
    if not missing and not extra:
        return
    if extra and len(missing) == len(base.rows):
        raise ManifestError(
            f"{file.path} and {base.path} have no id in common: expected such as {missing[0]}, found such as "
            f"{extra[0]}; are they of one list?"
        )
    parts = [
        f"{len(ids)} {what}: {id_list(ids)}"
        for what, ids in (("missing", missing), ("too many", extra))
        if ids
    ]
    raise ManifestError(f"{file.path}: expected the ids of {base.path}; {'; '.join(parts)}")


def _check_references(
    hypotheses: Sequence[TranscriptFile], references: TranscriptFile | None, left_out: Mapping[str, None]
) -> None:
    first, *others = [references] if references else hypotheses
    bare = [row.id for row in first.rows.values() if row.reference is None and row.id not in left_out]
    if bare:
        hint = "" if references else "; name a file of references with --ref"
        lacking = "none has one" if len(bare) == len(first.rows) else f"{len(bare)} lack one: {id_list(bare)}"
        raise ManifestError(f"{first.path}: expected a reference in every row; {lacking}{hint}")
    for file in others:
        differing = [
            name
            for name, row in first.rows.items()
            if name not in left_out and file.rows[name].reference != row.reference
        ]
        if differing:
            raise ManifestError(
                f"{first.path} and {file.path} carry different references for {len(differing)} ids: "
                f"{id_list(differing)}; name the file of true references with --ref"
            )
