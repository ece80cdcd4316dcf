from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from helpers.gate_entries import PLAN, RECORD, entry, fields, unrecorded
from oasr.errors import OptionsError
from oasr.gate.schema import RECORD_FIELDS, Entry, Reference, load, save
from oasr.scoring.wer import Score


def write(path: Path, *entries: dict, **changes: object) -> Path:
    value = {"tolerance_pct": 0.3, "entries": list(entries)} | changes
    path.write_text(json.dumps({k: v for k, v in value.items() if v is not None}), encoding="utf-8")
    return path


def test_a_file_is_read_whole(tmp_path):
    reference = load(
        write(tmp_path / "r.json", fields(), {**PLAN, "key": "new", "device": "cuda", "dtype": "float16"})
    )
    assert reference.tolerance_pct == 0.3
    assert reference.entries[0] == entry()
    assert reference.entries[0].record == Score(6, 3, 1, 200, "wer", "english", 3)
    assert reference.entries[1].record is None and reference.entries[1].device == "cuda"


def test_the_schema_has_the_fields_that_were_agreed_on():
    names = [field.name for field in msgspec.structs.fields(Entry)]
    assert names == [
        "key", "model", "model_sha256", "manifest", "manifest_sha256", "decode_method", "decode_options",
        "device", "dtype", "batch", "metric", "normalizer", "utterances", "ref_units", "substitutions",
        "deletions", "insertions", "error_rate_pct", "recorded_with", "recorded_on", "why",
    ]  # fmt: skip
    assert {*PLAN, *RECORD} == {*names} and {*RECORD} == {*RECORD_FIELDS}


def test_what_is_saved_is_what_was_read(tmp_path):
    reference = Reference(0.3, (entry(), unrecorded(key="ä", decode_options={"window": "auto", "pad": 1.5})))
    path = tmp_path / "r.json"
    save(reference, path)
    assert load(path) == reference
    text = path.read_text("utf-8")
    assert text.endswith("\n") and "ä" in text and "null" not in text
    save(load(path), path)
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"foo": 1}, r"entry 1 \(toy\): Object contains unknown field `foo`; known: key, model, .*, why"),
        ({"model": None}, r"entry 1 \(toy\): Object missing required field `model`"),
        ({"batch": 0}, r"Expected `int` >= 1 - at `\$.batch`"),
        ({"batch": "4"}, r"Expected `int`, got `str` - at `\$.batch`"),
        ({"ref_units": 0}, r"Expected `int` >= 1 - at `\$.ref_units`"),
        ({"deletions": -1}, r"Expected `int` >= 0 - at `\$.deletions`"),
        ({"model_sha256": "xyz"}, r"matching regex .* at `\$.model_sha256`"),
        ({"recorded_on": "today"}, r"matching regex .* at `\$.recorded_on`"),
        ({"key": "a b"}, r"matching regex .* at `\$.key`"),
        ({"decode_options": {"a": [1]}}, r"got `array` - at `\$.decode_options"),
        ({"device": "tpu"}, "device: expected one of cpu, cuda, found 'tpu'"),
        ({"dtype": "half"}, "dtype: expected one of auto, float32, .*, found 'half'"),
        ({"metric": "per"}, "metric: expected one of wer, cer, found 'per'"),
        ({"normalizer": "x"}, "normalizer: expected one of basic, chinese, english, none, found 'x'"),
        ({"why": None, "deletions": None}, "the record lacks deletions, why; complete it, or remove all"),
        ({"error_rate_pct": 4.9}, "error_rate_pct: the counts give 5.0000, found 4.9"),
    ],
)
def test_a_wrong_entry_is_named_with_what_was_expected(changes, said, tmp_path):
    with pytest.raises(OptionsError, match=said) as error:
        load(write(tmp_path / "r.json", fields(**changes)))
    assert str(error.value).startswith(f"{tmp_path / 'r.json'}: entry 1")


@pytest.mark.parametrize(
    ("entries", "changes", "said"),
    [
        ([fields(), fields()], {}, "expected a key of its own for each entry, twice: toy"),
        ([], {}, "expected at least one entry"),
        ([fields()], {"tolerance_pct": None}, "missing required field `tolerance_pct`"),
        ([fields()], {"tolerance_pct": -1}, "tolerance_pct"),
        ([fields()], {"extra": 1}, "unknown field `extra`; known: tolerance_pct, entries"),
        (["x"], {}, "entry 1: Expected `object`, got `str`"),
        ([], {"entries": 3}, "expected an object with tolerance_pct and a list of entries"),
    ],
)
def test_a_wrong_file_is_named(entries, changes, said, tmp_path):
    with pytest.raises(OptionsError, match=said):
        load(write(tmp_path / "r.json", *entries, **changes))


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(OptionsError, match=r"r.json: cannot be read: No such file"):
        load(tmp_path / "r.json")
    (tmp_path / "r.json").write_text("{")
    with pytest.raises(OptionsError, match=r"r.json: expected JSON in UTF-8"):
        load(tmp_path / "r.json")
