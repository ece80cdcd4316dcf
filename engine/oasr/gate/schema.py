"""The file of pinned error rates, read strictly and written in one fixed form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from oasr.config import DTYPES
from oasr.errors import OptionsError
from oasr.output.results_file import atomic_file
from oasr.scoring.normalize import NORMALIZERS
from oasr.scoring.wer import METRICS, Score

Count = Annotated[int, msgspec.Meta(ge=0)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
T = TypeVar("T", bound=msgspec.Struct)
Name = Annotated[str, msgspec.Meta(min_length=1)]
RECORD_FIELDS = (
    "model_sha256",
    "manifest_sha256",
    "utterances",
    "ref_units",
    "substitutions",
    "deletions",
    "insertions",
    "error_rate_pct",
    "recorded_with",
    "recorded_on",
    "why",
)
DECIMALS = 4  # of error_rate_pct: finer than one error in a million units
DEVICES = ("cpu", "cuda")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pinned error rate: what is run, and what came out when it was recorded.

    The fields of RECORD_FIELDS are all there or all absent: an entry is written by hand without them, and
    `oasr gate --update` fills them in.

    Attributes:
        key: the entry's name, unique in the file, without white space.
        model: catalog name, hub id, or path relative to the file or to the assets root.
        model_sha256: of the weights file; of a sharded model, of the listing of its shards.
        manifest: path relative to the file or to the assets root.
        decode_method, decode_options, dtype, batch: as EngineConfig has them (batch = max_batch_size).
        device: class of device; "cuda" is the first GPU.
        metric, normalizer: how texts are compared.
        utterances: rows of the manifest.
        ref_units: reference words or characters after normalising.
        error_rate_pct: errors in percent of `ref_units`.
        recorded_with: versions and machine.
        recorded_on: day, as YYYY-MM-DD.
        why: the reason that `--why` gave for this record.
    """

    key: Annotated[str, msgspec.Meta(pattern=r"^\S+$")]
    model: Name
    model_sha256: Sha256 | None = None
    manifest: Name
    manifest_sha256: Sha256 | None = None
    decode_method: Name
    decode_options: dict[str, str | int | float | bool] = {}
    device: str
    dtype: str
    batch: Annotated[int, msgspec.Meta(ge=1)]
    metric: str
    normalizer: str
    utterances: Annotated[int, msgspec.Meta(ge=1)] | None = None
    ref_units: Annotated[int, msgspec.Meta(ge=1)] | None = None
    substitutions: Count | None = None
    deletions: Count | None = None
    insertions: Count | None = None
    error_rate_pct: Annotated[float, msgspec.Meta(ge=0)] | None = None
    recorded_with: dict[str, str] | None = None
    recorded_on: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    why: Name | None = None

    @property
    def record(self) -> Score | None:
        """The recorded counts; None when the entry was never recorded."""
        if self.ref_units is None:
            return None
        counts = (self.substitutions or 0, self.deletions or 0, self.insertions or 0)
        return Score(*counts, self.ref_units, self.metric, self.normalizer, self.utterances or 0)


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file.

    Attributes:
        tolerance_pct: percentage points by which a rate may exceed its record.
    """

    tolerance_pct: Annotated[float, msgspec.Meta(ge=0, le=100)]
    entries: tuple[Entry, ...]


def load(path: Path) -> Reference:
    """Read and check a file.

    Raises:
        OptionsError: it cannot be read, is no JSON, lacks a field or has one too many, holds a value of the
            wrong type or range, or contradicts itself; the message names the entry.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise OptionsError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise OptionsError(f"{path}: expected JSON in UTF-8: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("entries"), list):
        raise OptionsError(f"{path}: expected an object with tolerance_pct and a list of entries")
    # One by one, so that a message can name the entry by its key.
    entries = tuple(_entry(value, f"{path}: entry {i}") for i, value in enumerate(found["entries"], 1))
    reference = _converted({**found, "entries": entries}, Reference, str(path))
    keys = [entry.key for entry in entries]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise OptionsError(f"{path}: expected a key of its own for each entry, twice: {', '.join(repeated)}")
    if not keys:
        raise OptionsError(f"{path}: expected at least one entry, found none")
    return reference


def save(reference: Reference, path: Path) -> None:
    """Write the file anew, in one step; fields in the order of the schema, those without a value left out."""
    fields = msgspec.structs.asdict(reference)
    fields["entries"] = [
        {name: value for name, value in msgspec.structs.asdict(entry).items() if value is not None}
        for entry in reference.entries
    ]
    with atomic_file(path) as file:
        file.write(json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n")


def _entry(value: Any, where: str) -> Entry:
    if isinstance(value, dict) and isinstance(value.get("key"), str):
        where += f" ({value['key']})"
    entry = _converted(value, Entry, where)
    choices = {
        "device": DEVICES,
        "dtype": DTYPES,
        "metric": METRICS,
        "normalizer": tuple(NORMALIZERS.names()),
    }
    for name, known in choices.items():
        if getattr(entry, name) not in known:
            raise OptionsError(
                f"{where}: {name}: expected one of {', '.join(known)}, found {getattr(entry, name)!r}"
            )
    _check_record(entry, where)
    return entry


def _check_record(entry: Entry, where: str) -> None:
    """Refuse half a record, and a rate that its counts do not give."""
    # A figure edited by hand is the one way in which a gate could be loosened unseen.
    absent = [name for name in RECORD_FIELDS if getattr(entry, name) is None]
    if 0 < len(absent) < len(RECORD_FIELDS):
        raise OptionsError(
            f"{where}: the record lacks {', '.join(absent)}; complete it, or remove all of "
            f"{', '.join(RECORD_FIELDS)} and record it with --update"
        )
    rate = None if entry.record is None else entry.record.rate
    if rate is not None and abs(rate - (entry.error_rate_pct or 0.0)) > 10**-DECIMALS:
        raise OptionsError(
            f"{where}: error_rate_pct: the counts give {rate:.{DECIMALS}f}, found {entry.error_rate_pct}"
        )


def _converted(value: Any, kind: type[T], where: str) -> T:
    """`value` as `kind`, with an error that names the field."""
    # Strict, also about names: a misspelt field would leave its default in force and pin something else.
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        known = ""
        if "unknown field" in str(error):
            known = f"; known: {', '.join(field.name for field in msgspec.structs.fields(kind))}"
        raise OptionsError(f"{where}: {error}{known}") from error
