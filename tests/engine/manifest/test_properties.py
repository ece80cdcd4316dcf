"""Whatever a manifest holds, each line that is not blank gives one row, in order, under one id."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oasr.errors import ManifestError
from oasr.manifest import InputOptions, open_inputs
from oasr.manifest import lines as line_files
from oasr.manifest.json_line import line_id, plain_ids, plain_keys
from oasr.manifest.lines import LineFile
from oasr.types import RowFailure, Utterance

COLD = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | UNICODE
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(UNICODE, v, max_size=3), max_leaves=5
)
OURS = ["id", "key", "audio", "audio_filepath", "wav", "text", "txt", "lang", "language", "offset", "start"]
OURS += ["duration", "end", "channel", "task", "prompt"]
FOREIGN = st.dictionaries(UNICODE.filter(lambda key: key not in OURS), VALUES, max_size=5)
ENDS = st.sampled_from([b"\n", b"\r\n"])
PATHS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)


@st.composite
def good_rows(draw: st.DrawFn) -> dict[str, Any]:
    row = {draw(st.sampled_from(["audio", "audio_filepath", "wav"])): draw(PATHS)}
    optional: dict[str, st.SearchStrategy] = {
        draw(st.sampled_from(["id", "key"])): st.integers() | UNICODE.filter(bool),
        draw(st.sampled_from(["text", "txt"])): UNICODE,
        draw(st.sampled_from(["lang", "language"])): UNICODE,
        draw(st.sampled_from(["offset", "start"])): st.floats(0, 1e6),
        "duration": st.floats(1e-3, 1e6),
        "channel": st.integers(0, 9) | st.sampled_from(["mix", "split"]),
        "prompt": UNICODE,
    }
    for key, values in optional.items():
        if draw(st.booleans()):
            row[key] = draw(values | st.none())
    row.update(draw(FOREIGN))
    return dict(draw(st.permutations(list(row.items()))))


def encode(row: Any, escape: bool = False) -> bytes:
    return json.dumps(row, ensure_ascii=escape).encode()


@settings(COLD, max_examples=50)
@given(st.lists(st.tuples(good_rows(), st.booleans(), ENDS, st.integers(0, 2)), max_size=8), st.booleans())
def test_good_rows_come_through_unchanged(tmp_path, items, mark):
    path = tmp_path / "list.jsonl"
    data, expected, number = b"\xef\xbb\xbf" if mark else b"", [], 0
    for row, escape, end, blanks in items:
        data += encode(row, escape) + end + b" \t"[:blanks] + end
        expected.append((row, number + 1))
        number += 2
    path.write_bytes(data)
    found = list(open_inputs([str(path)]))
    assert len(found) == len(expected)
    for index, (utterance, (row, line)) in enumerate(zip(found, expected, strict=True)):
        assert isinstance(utterance, Utterance), utterance
        assert utterance.row == row
        assert list(utterance.row) == list(row)
        assert utterance.index == index
        assert utterance.origin == f"{path}:{line}"
        stated = row.get("id") if row.get("id") is not None else row.get("key")
        assert stated is None or utterance.id == str(stated)


LINES = st.one_of(
    good_rows().map(encode),
    st.dictionaries(
        st.sampled_from(OURS), VALUES | st.just(float("nan")) | st.just("\ud83d"), max_size=6
    ).map(lambda row: encode(row, escape=True)),
    VALUES.map(encode),
    st.tuples(good_rows().map(encode), st.integers(0, 40)).map(lambda cut: cut[0][: cut[1]]),
    st.tuples(good_rows().map(encode), good_rows().map(encode)).map(
        lambda two: two[0][:-1] + b"," + two[1][1:]
    ),
    st.binary(max_size=20),
    st.sampled_from([b"", b"  ", b"\t", b"{}", b"[", b'{"id": 1.0, "id": "a"}', b'{"id": "a", "id": null}']),
).map(lambda line: line.replace(b"\n", b" "))


@settings(COLD, max_examples=80)
@given(st.lists(st.tuples(LINES, ENDS), max_size=10), st.booleans())
def test_every_line_gives_one_row(tmp_path, items, last_newline):
    path = tmp_path / "list.jsonl"
    data = b"".join(line + end for line, end in items)
    if items and not last_newline:
        data = data.removesuffix(items[-1][1])
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = b" " + data
    path.write_bytes(data)
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    numbers = [n for n, line in enumerate(data[start:].split(b"\n"), 1) if line.strip()]
    inputs = open_inputs([str(path)])
    found = list(inputs)
    assert [row.origin for row in found] == [f"{path}:{n}" for n in numbers]
    assert [row.index for row in found] == list(range(len(numbers)))
    assert [row.id for row in found] == [name for block in inputs._readers[0].ids() for name in block]
    assert inputs.count() == len(found)
    for row in found:
        row.id.encode()
        json.dumps(row.row, allow_nan=False, ensure_ascii=False).encode()
        if isinstance(row, RowFailure):
            assert row.message.startswith(row.origin)
    third = list(open_inputs([str(path)], InputOptions(shard=(1, 3))))
    assert third == found[1::3]


@settings(COLD, max_examples=100)
@given(st.lists(LINES.filter(lambda line: line.strip()), min_size=1, max_size=3))
def test_the_fast_search_for_ids_agrees_with_the_careful_one(lines):
    fast = plain_ids(lines)
    assert fast is None or fast == [line_id(line, "fallback") for line in lines]


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a", "audio": "x"},
        {"key": "a", "wav": "x"},
        {"id": 3},
        {"audio_filepath": "x.wav", "offset": 1, "duration": 2.5},
        {"audio": "x.wav", "duration": 0},
        {"wav": "x.wav", "offset": 0.1234},
    ],
)
def test_plain_manifests_take_the_fast_path(row):
    line = encode(row)
    assert plain_ids([line, line]) == [line_id(line, "fallback")] * 2


@pytest.mark.parametrize(
    "row",
    [
        {"audio": "x.wav", "audio_filepath": "y.wav"},
        {"audio": "x.wav", "wav": "x.wav"},
        {"audio": "", "wav": "x.wav"},
        {"audio": "x\0.wav"},
        {"audio": "x.wav", "offset": -1},
        {"audio": "x.wav", "offset": 1e10},
        {"audio": "x.wav", "offset": "1.5"},
        {"audio": "x.wav", "offset": 1, "duration": 0},
        {"audio": "x.wav", "end": 3},
        {"audio": "x.wav", "channel": 1},
        {"id": "", "audio": "x.wav"},
        {"id": "a", "audio": "x.wav", "offset": 1},
        {"audio": "x.wav", "duration": 2},
        {"offset": 1},
    ],
)
def test_rows_that_need_a_closer_look_get_it(row):
    line = encode(row)
    plain = b'{"audio": "p.wav", "offset": 1.0}'
    for lines in ([line], [line, line], [plain, line], [line, plain]):
        assert plain_ids(lines) in (None, [line_id(each, "fallback") for each in lines])


STRETCHES = st.fixed_dictionaries(
    {"audio": st.sampled_from(["x", "x@1.000", "x@1.000+2.000", "x+2.000", "y@"])},
    optional={
        "offset": st.sampled_from([0, 1, 1.0, 2, 0.1, 0.1234]),
        "duration": st.sampled_from([1, 2, 2.0]),
    },
)


@settings(COLD, max_examples=300)
@given(st.lists(st.tuples(STRETCHES, STRETCHES), min_size=1, max_size=4))
def test_stretches_are_told_apart_by_their_keys_as_by_their_ids(pairs):
    """A repeated id is never missed because keys were compared instead of ids."""
    blocks = [[encode(row) for row in pair] for pair in pairs]
    keys = list(map(plain_keys, blocks))
    if None in keys:
        return
    ids = [line_id(line, "fallback") for block in blocks for line in block]
    flat = [key for block in keys for key in block]
    assert (len(set(flat)) < len(flat)) == (len(set(ids)) < len(ids))


@pytest.mark.parametrize("again", [0, 7, None])
def test_a_repeated_stretch_is_found(tmp_path, again):
    rows = [{"audio": "x.wav", "offset": i / 8, "duration": 2} for i in range(8)]
    rows += [] if again is None else [rows[again]]
    path = tmp_path / "list.jsonl"
    path.write_bytes(b"\n".join(map(encode, rows)))
    inputs = open_inputs([str(path)])
    if again is None:
        inputs.check_ids()
        assert inputs.count() == 8
    else:
        with pytest.raises(ManifestError, match=f":{again + 1} and .*:9"):
            inputs.check_ids()


@COLD
@given(
    st.lists(st.sampled_from([b"s", b"p", b"split", b"\\", rb"\u006", b"\n"]), max_size=12).map(b"".join),
    st.lists(st.sampled_from([b"p", b"split", rb"\u006", b"ps"]), min_size=1, max_size=3),
    st.integers(1, 9),
)
def test_a_word_is_found_wherever_the_pieces_that_are_read_part_it(tmp_path, content, words, size):
    (tmp_path / "list").write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_files, "_READ_BYTES", size)
        assert LineFile(str(tmp_path / "list")).mentions(words) == any(word in content for word in words)


@COLD
@given(rows=st.lists(good_rows(), max_size=6))
def test_rows_that_split_themselves_are_found_without_reading_the_others(tmp_path, rows):
    (tmp_path / "list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
    if rows:
        [reader] = open_inputs([str(tmp_path / "list.jsonl")])._readers
        listed = [reader.row(entry, index) for index, entry in enumerate(reader.entries())]
        apart = [row.id for row in listed if isinstance(row, Utterance) and row.channel == "split"]
        assert list(reader.split_ids()) == apart
