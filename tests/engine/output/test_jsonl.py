from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.output.jsonl import decode_line, encode_line

LONE = st.characters(min_codepoint=0xD800, max_codepoint=0xDBFF)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=6))
def test_rows_read_back_as_they_were_in_the_same_key_order(row):
    line = encode_line(row)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode_line(line) == row
    assert list(decode_line(line)) == list(row)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=()) | LONE).filter(lambda s: not _has_pair(s)))
def test_any_python_string_survives_and_the_line_is_valid_utf8(text):
    line = encode_line({"id": text})
    line.decode("utf-8")
    assert decode_line(line) == {"id": text}


def _has_pair(text: str) -> bool:
    """A high surrogate before a low one is one character in JSON; no decoder yields such a string."""
    return any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


def test_text_is_written_as_it_reads():
    assert encode_line({"t": "真っ昼間 é 🎙 \u2028"}) == '{"t": "真っ昼間 é 🎙 \u2028"}\n'.encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf")])
def test_numbers_that_json_lacks_become_null_at_any_depth(value):
    row = decode_line(encode_line({"a": value, "b": [{"c": (value, 1.5)}], "d": 2}))
    assert row == {"a": None, "b": [{"c": [None, 1.5]}], "d": 2}


def test_foreign_objects_of_a_python_caller_do_not_break_the_row():
    loop: list[object] = []
    loop.append(loop)
    row = {"n": np.int64(3), "v": np.arange(2), "p": Path("a/b"), "b": b"\xff", 1: "one", "l": loop, "c": 1j}
    assert decode_line(encode_line(row)) == {
        "n": 3, "v": [0, 1], "p": "a/b", "b": "\udcff", "1": "one", "l": [None], "c": "1j",
    }  # fmt: skip


def test_deep_nesting_is_cut_rather_than_raised():
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    json.loads(encode_line({"deep": deep}))


@pytest.mark.parametrize(
    ("line", "message"),
    [(b"[1]\n", "expected a JSON object, found list"), (b'{"a": ', "Expecting"), (b"\xff\xfe{}", "utf-8")],
)
def test_what_is_no_object_is_refused(line, message):
    with pytest.raises(ValueError, match=message):
        decode_line(line)


def test_a_line_of_brackets_is_refused_not_a_crash():
    with pytest.raises(ValueError):
        decode_line(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}")
