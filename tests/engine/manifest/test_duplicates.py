"""Finding two rows with one id."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oasr.errors import ManifestError
from oasr.manifest import duplicates, open_inputs
from oasr.manifest.lines import BLOCK_LINES


def message(*inputs) -> str:
    with pytest.raises(ManifestError) as caught:
        open_inputs([str(path) for path in inputs]).check_ids()
    return str(caught.value)


def test_both_lines_and_the_id_are_named(write):
    a, b = {"id": "a", "audio": "1.wav"}, {"id": "b", "audio": "2.wav"}
    path = write("list.jsonl", a, "", b, "{broken", {**a, "audio": "3.wav"})
    text = message(path)
    assert "'a'" in text
    assert f"{path}:1 and {path}:5" in text


def test_across_inputs(write, tmp_path):
    one = write("one.jsonl", {"id": "a", "audio": "1.wav"})
    two = write("two.jsonl", {"key": "b", "wav": "1.wav"}, {"key": "a", "wav": "2.wav"})
    assert f"{one}:1 and {two}:2" in message(one, two)
    scp = write("k/wav.scp", "z z.wav", "a a.wav")
    assert f"{one}:1 and {scp}:2" in message(one, scp.parent)
    assert f"{one}:1 and {one}:1" in message(one, one)
    recording = write("f/x.wav")
    assert f"{recording} (found through {tmp_path}/f) and {recording};" in message(tmp_path / "f", recording)


def test_however_the_id_comes_about(write):
    assert "'7'" in message(write("ints.jsonl", {"id": 7, "audio": "a"}, {"id": "7", "audio": "b"}))
    assert "'k'" in message(write("keys.jsonl", {"key": "k", "wav": "a"}, {"id": "k", "audio": "b"}))
    nemo = {"audio_filepath": "a.wav", "offset": 1, "duration": 2}
    assert "'a.wav@1.000+2.000'" in message(write("nemo.jsonl", nemo, {**nemo, "offset": 1.0, "text": "t"}))
    assert "'a'" in message(
        write("bad.jsonl", {"id": "a", "audio": "x", "offset": -1}, {"id": "a", "audio": "y"})
    )


def test_the_first_repeat_is_reported_with_the_number_of_all(write):
    names = [str(i) for i in range(BLOCK_LINES * 2)]
    names[5000] = names[17]
    names[5001] = names[3]
    names[8000] = names[17]
    path = write("list.jsonl", *({"id": name, "audio": "a.wav"} for name in names))
    text = message(path)
    assert f"'17': {path}:18 and {path}:5001 " in text
    assert "3 rows in all" in text


@pytest.mark.parametrize("buckets", [1, 2, 50])
def test_hashes_that_collide_are_no_alarm(monkeypatch, buckets):
    monkeypatch.setattr(duplicates, "_hash", lambda name: len(name) * 7919 % buckets)
    monkeypatch.setattr(duplicates, "_GROUPS_A_PASS", 3)
    names = ["x" * n for n in range(200)]
    assert duplicates.scan_ids(lambda: [names[:90], names[90:]]).pair is None
    names[150] = names[40]
    found = duplicates.scan_ids(lambda: [names[:90], [], names[90:]])
    assert (found.pair, found.id, found.count) == ((40, 150), "x" * 40, 200)


def test_the_first_repeat_is_found_first_among_many(monkeypatch):
    monkeypatch.setattr(duplicates, "_GROUPS_A_PASS", 1)
    names = [str(n) for n in (*range(100), *range(99, -1, -1))]
    found = duplicates.scan_ids(lambda: [names])
    assert (found.pair, found.repeats) == ((99, 100), 100)


@given(st.lists(st.text(max_size=3), max_size=60), st.integers(1, 8))
def test_agrees_with_a_dictionary(names, size):
    seen: dict[str, int] = {}
    expected = None
    for i, name in enumerate(names):
        if name in seen:
            expected = (seen[name], i)
            break
        seen[name] = i
    blocks = [names[i : i + size] for i in range(0, len(names), size)]
    found = duplicates.scan_ids(lambda: blocks)
    assert (found.pair, found.count) == (expected, len(names))
    if expected:
        assert found.id == names[expected[1]]


def test_a_long_list_whose_ids_all_differ(write):
    names = [f"utt-{i:06d}" for i in range(30_000)]
    random.Random(0).shuffle(names)
    path = write("list.jsonl", *(json.dumps({"id": name, "audio": "a.wav"}) for name in names))
    inputs = open_inputs([str(path)])
    inputs.check_ids()
    assert inputs.count() == 30_000
    with path.open("a") as file:
        file.write(json.dumps({"id": names[29_000], "audio": "b.wav"}) + "\n")
    assert re.search(r":29001 and .*:30001", message(path))
