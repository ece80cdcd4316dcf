"""Lines, encodings, and lines that are not what they should be."""

from __future__ import annotations

import json

import pytest
from oasr.errors import ManifestError
from oasr.manifest import open_inputs
from oasr.types import RowFailure, Utterance

A, B, C = ({"id": name, "audio": f"{name}.wav"} for name in "abc")


def ids(rows) -> list[str]:
    return [row.id for row in rows]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_and_blank_lines(rows, end):
    found = rows(A, "", B, "  \t ", C, end=end)
    assert ids(found) == ["a", "b", "c"]
    assert [row.index for row in found] == [0, 1, 2]
    assert [row.origin.rsplit(":")[-1] for row in found] == ["1", "3", "5"]


def test_missing_last_newline(write):
    path = write("list.jsonl", A)
    path.write_bytes(path.read_bytes() + json.dumps(B).encode())
    inputs = open_inputs([str(path)])
    assert ids(inputs) == ["a", "b"]
    assert inputs.count() == 2


def test_byte_order_marks(write):
    mark = b"\xef\xbb\xbf"
    path = write("list.jsonl", mark + json.dumps(A).encode(), B, mark + json.dumps(C).encode())
    inputs = open_inputs([str(path)])
    assert ids(inputs) == ["a", "b", "c"]
    inputs.check_ids()
    path.write_bytes(mark + b"\r\n")
    assert open_inputs([str(path)]).count() == 0


def test_utf16_is_refused_with_the_command_that_helps(write):
    path = write("list.jsonl", json.dumps(A).encode("utf-16"))
    with pytest.raises(ManifestError, match="iconv -f UTF-16"):
        open_inputs([str(path)])


def test_unicode_separators_do_not_end_a_line(rows):
    (row,) = rows({"id": "a\u2028b\x85", "audio": "x.wav", "text": "\u2029"})
    assert (row.id, row.text) == ("a\u2028b\x85", "\u2029")


BROKEN = {
    "cut": b'{"id": "b", "audio":',
    "bare text": b"b.wav",
    "html": b"<!DOCTYPE html>",
    "two objects": b'{"id": "b"} {"id": "c"}',
    "array": b'["b", "b.wav"]',
    "number": b"12",
    "null": b"null",
    "string": b'"b.wav"',
    "opening bracket": b"[",
    "nul bytes": b"\0\0\0\0",
    "too deep": b"[" * 100_000,
    "latin-1": b"{\xe9}",
    "single quotes": b"{'id': 'b'}",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_line_is_one_failed_row(write, kind):
    inputs = open_inputs([str(write("list.jsonl", A, BROKEN[kind], C))])
    first, broken, last = inputs
    assert (first.id, last.id, last.index) == ("a", "c", 2)
    assert isinstance(broken, RowFailure)
    assert (broken.id, broken.index, broken.stage) == ("list.jsonl:2", 1, "manifest")
    assert (
        broken.message.startswith(f"{inputs.sources[0]}:2 (id=list.jsonl:2): expected")
        or "deep" in broken.message
    )
    assert len(broken.message) < 400
    inputs.check_ids()


def test_json_that_is_not_lines_says_how_to_convert(rows):
    whole = rows(json.dumps([A, B]))
    assert "an array" in whole[0].message and "jq -c '.[]'" in whole[0].message
    pretty = rows(json.dumps([A, B], indent=1))
    assert len(pretty) == len(json.dumps([A, B], indent=1).splitlines())
    assert "jq -c '.[]'" in pretty[0].message and "jq -c '.[]'" in pretty[-1].message
    bracketed = rows(b"[", json.dumps(A).encode() + b",", json.dumps(B).encode(), b"]")
    assert [isinstance(row, RowFailure) for row in bracketed] == [True, True, False, True]
    assert all("jq -c '.[]'" in row.message for row in bracketed if isinstance(row, RowFailure))
    assert "jq -c ." in rows(json.dumps(A, indent=1))[0].message


def test_the_place_of_a_mistake_does_not_read_like_a_line_of_the_manifest(rows):
    (broken,) = rows(b'{"id": "a" "audio": "a.wav"}')
    assert "at character 12)" in broken.message
    assert "line 1" not in broken.message


def test_thousands_of_digits_fail_their_row_only(write):
    row = b'{"audio": "a.wav", "channel": "' + b"9" * 5000 + b'"}'
    inputs = open_inputs([str(write("list.jsonl", row, C))])
    inputs.check_ids()
    bad, good = inputs
    assert isinstance(bad, RowFailure) and "channel: expected" in bad.message
    assert good.id == "c"


def test_invalid_utf8_fails_the_row_under_its_own_id(rows):
    good, bad, *_ = rows(A, b'{"id": "b", "audio": "b.wav", "text": "caf\xe9"}', C)
    assert isinstance(good, Utterance)
    assert isinstance(bad, RowFailure)
    assert bad.id == "b"
    assert "expected UTF-8, found byte 0xe9 at byte 43" in bad.message
    (bad,) = rows(b'{"id": "b\xe9", "audio": "b.wav"}')
    assert bad.id == "list.jsonl:1"


@pytest.mark.parametrize("first", [b"", b'{"id": "x", "audio": "x.wav"}\n'])
@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'{"audio": "a.wav", "note": "caf\xe9"}', "a.wav"),
        (b'{"audio": "a.wav", "offset": 1, "duration": 2, "note": {"id": "\xe9"}}', "a.wav@1.000+2.000"),
        (b'{"audio": "a.wav", "note": "\\ud83d", "more": 1, "more": 2}', None),
        (b'{"audio": "a\xe9.wav"}', None),
    ],
)
def test_a_failed_row_goes_by_the_id_that_is_searched_for_repeats(write, first, line, name):
    (reader,) = open_inputs([str(write("list.jsonl", first + line, end=b""))])._readers
    rows = [reader.row(entry, 0) for entry in reader.entries()]
    assert [row.id for row in rows] == [one for block in reader.ids() for one in block]
    assert isinstance(rows[-1], RowFailure) and rows[-1].id == (name or f"list.jsonl:{len(rows)}")


@pytest.mark.parametrize(
    "value", ["NaN", "-Infinity", "1e999", "[1, NaN]", '{"x": NaN}', '"\\ud83d"', '{"\\ud83d": 1}']
)
def test_what_json_cannot_carry_in_a_foreign_key_becomes_null(rows, value):
    (row,) = rows(f'{{"id": "a", "audio": "a.wav", "extra": {value}, "more": 1}}')
    assert isinstance(row, Utterance)
    assert row.row["more"] == 1
    text = json.dumps(row.row, allow_nan=False, ensure_ascii=False)
    assert "null" in text or "\ufffd" in text
    text.encode()


@pytest.mark.parametrize("key", ["id", "audio", "text", "language", "prompt"])
def test_half_a_surrogate_pair_in_our_keys_fails_the_row(rows, key):
    (row,) = rows(json.dumps({"id": "a", "audio": "a.wav", key: "x\ud83d"}))
    assert isinstance(row, RowFailure)
    assert row.id == ("list.jsonl:1" if key == "id" else "a")
    assert key in row.message
    assert "\\ud83d" in row.message
    json.dumps(row.row, ensure_ascii=False).encode()


def test_surrogate_pairs_are_characters(rows):
    (row,) = rows('{"id": "\\ud83d\\ude00", "audio": "a.wav"}')
    assert row.id == "😀"


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "audio": "a.wav", "text": "x", "text": "y"}',
        '{"id": "a", "audio": "a.wav", "note": {"k": 1, "k": 2}}',
        '{"id": "a", "audio": "a.wav", "snr": NaN, "text": "x", "text": "y"}',
    ],
)
def test_a_key_with_two_values_fails_the_row(rows, line):
    (row,) = rows(line)
    assert isinstance(row, RowFailure)
    assert row.id == "a"
    assert "given twice" in row.message


def test_a_key_repeated_with_the_same_value_is_harmless(rows):
    (row,) = rows('{"id": "a", "audio": "a.wav", "text": "x", "text": "x", "n": {"a:b": ":"}}')
    assert isinstance(row, Utterance)


def test_values_are_carried_unchanged(rows):
    extra = {
        "": 1,
        "big": 2**80,
        "float": 0.1,
        "tiny": 5e-324,
        "neg": -0.0,
        "nested": [{"k": [None, True, "é\u0000"]}],
        "日本": "語",
        "segments": [{"start": 0, "end": 1}],
    }
    (row,) = rows({"id": "a", "audio": "a.wav", **extra})
    assert row.row == {"id": "a", "audio": "a.wav", **extra}
    assert list(row.row) == ["id", "audio", *extra]
    assert str(row.row["neg"]) == "-0.0"


def test_a_line_of_many_megabytes(rows):
    text = "word " * 1_000_000
    found = rows({"id": "a", "audio": "a.wav", "text": text}, B)
    assert found[0].text == text
    assert found[1].id == "b"


def test_failed_rows_keep_their_keys(rows):
    (row,) = rows({"id": "a", "audio": "a.wav", "offset": -1, "speaker": "s"})
    assert row.row["speaker"] == "s"


def test_odd_ids_do_not_break_messages(rows):
    (row,) = rows({"id": "a\nb", "audio": "a.wav", "offset": -1})
    assert "(id='a\\nb')" in row.message
    assert row.message.count("\n") == 0


def test_rows_are_read_lazily(write):
    path = write("list.jsonl", *([A] * 3))
    iterator = iter(open_inputs([str(path)]))
    assert next(iterator).id == "a"
    iterator.close()
