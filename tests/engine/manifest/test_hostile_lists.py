"""Lists that are no lists: lines without end, nesting without end, numbers without end."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from oasr.errors import ManifestError
from oasr.manifest import lenient_json
from oasr.manifest.lines import LONGEST_LINE, LineFile
from oasr.manifest.opening import open_inputs
from oasr.types import RowFailure

GOOD = '{"id": "good", "audio": "a.wav"}\n'


def rows_of(path: Path) -> list:
    listed = open_inputs([str(path)])
    listed.check_ids()
    rows = list(listed)
    assert len(rows) == listed.count()
    return rows


@pytest.mark.parametrize("filler", ["x", " "])
@pytest.mark.parametrize("last", [True, False])
def test_a_line_of_a_hundred_megabytes_is_one_failed_row(tmp_path: Path, filler: str, last: bool) -> None:
    path = tmp_path / "list.jsonl"
    with path.open("w") as file:
        file.write(GOOD + '{"id": "long", "audio": "a.wav"}' + (" " if filler == " " else "{"))
        for _ in range(100):
            file.write(filler * (1 << 20))
        file.write("}" + ("" if last else "\n" + GOOD.replace("good", "next")))
    tracemalloc.start()
    rows = rows_of(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [row.id for row in rows] == ["good", "list.jsonl:2", *([] if last else ["next"])]
    assert isinstance(rows[1], RowFailure) and "at most 16 MiB" in rows[1].message
    assert most < 9 * LONGEST_LINE


def test_a_line_as_long_as_may_be_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    head = '{"id": "long", "audio": "a.wav", "text": "'
    path.write_text(head + "x" * (LONGEST_LINE - len(head) - 3) + '"}\n' + GOOD)
    assert [row.id for row in rows_of(path)] == ["long", "good"]
    assert not isinstance(rows_of(path)[0], RowFailure)


@pytest.mark.parametrize("line", ['{"id": "odd", "audio": NaN, "x": [%s]}', "[NaN, %s]"])
def test_arrays_without_end_are_only_read_by_the_fast_parser(tmp_path, monkeypatch, line: str) -> None:
    path = tmp_path / "list.jsonl"
    monkeypatch.setattr(lenient_json.json, "loads", lambda *_, **__: pytest.fail("costs seconds a megabyte"))
    path.write_text(line % ", ".join(["[]"] * 100_000) + "\n" + GOOD)
    odd, good = rows_of(path)
    assert isinstance(odd, RowFailure) and odd.id == "list.jsonl:1" and good.id == "good"
    assert "more than 100000 arrays" in odd.message and ("jq -c" in odd.message) == line.startswith("[")


@pytest.mark.parametrize("stated", ["", '"id": "odd", ', '"id": [1], '])
def test_arrays_without_end_are_no_row_in_strict_json_either(tmp_path, monkeypatch, stated: str) -> None:
    path = tmp_path / "list.jsonl"
    monkeypatch.setattr(lenient_json.json, "loads", lambda *_, **__: pytest.fail("costs seconds a megabyte"))
    crowd = ", ".join(["{}"] * 200_000)
    path.write_text(f'{{{stated}"audio": "a.wav", "x": [{crowd}]}}\n' + GOOD)
    odd, good = rows_of(path)
    assert isinstance(odd, RowFailure) and "at most 200000 arrays and objects" in odd.message
    assert good.id == "good" and odd.id == next(open_inputs([str(path)])._ids())


def test_blocks_are_bounded_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_bytes((b"x" * (1 << 20) + b"\n") * 80)
    sizes = [sum(map(len, block)) for block in LineFile(str(path)).blocks()]
    assert len(sizes) > 1 and max(sizes) < 40 << 20


def test_a_table_with_an_endless_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wav.scp").write_text("r a.wav\n")
    (tmp_path / "segments").write_text("u r 0 1\n")
    (tmp_path / "text").write_text("u " + "x" * (LONGEST_LINE + 5) + "\n")
    with pytest.raises(ManifestError, match=r"text: expected lines of at most 16 MiB"):
        list(open_inputs([str(tmp_path)]))


@pytest.mark.parametrize("depth", [300, 480, 600, 990, 100_000])
@pytest.mark.parametrize("leaf", ["1", "NaN", '"\\ud800"'])
def test_nesting_fails_its_row_or_is_carried(tmp_path: Path, depth: int, leaf: str) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(
        '{"id": "deep", "audio": "a.wav", "x": ' + "[" * depth + leaf + "]" * depth + "}\n" + GOOD
    )
    deep, good = rows_of(path)
    assert good.id == "good" and not isinstance(good, RowFailure)
    assert not isinstance(deep, RowFailure) or "deep" in deep.message


def test_byte_order_marks_without_end(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    marks = b"\xef\xbb\xbf" * 5000
    path.write_bytes(b"\n" + marks + GOOD.encode() + marks + b"\n")
    good, odd = rows_of(path)
    assert good.id == "good" and not isinstance(good, RowFailure)
    assert isinstance(odd, RowFailure) and odd.id == "list.jsonl:3"


@pytest.mark.parametrize("value", ["1" * 5000, "1e999999", "-" + "9" * 400, '"' + "1" * 5000 + '"'])
@pytest.mark.parametrize("key", ["offset", "duration", "end", "channel", "id"])
def test_huge_numbers_fail_their_row(tmp_path: Path, key: str, value: str) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(f'{{"audio": "a.wav", "{key}": {value}}}\n' + GOOD)
    odd, good = rows_of(path)
    assert good.id == "good" and (isinstance(odd, RowFailure) or key == "id")
    assert len(getattr(odd, "message", "")) < 2000


def test_a_path_too_long_for_any_file_system_is_left_to_its_row(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(json.dumps({"id": "long", "audio": "x" * 5000}) + "\n")
    listed = open_inputs([str(path)])
    (row,) = listed
    assert row.audio.endswith("x" * 5000)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "wav.scp").write_text("u " + "x" * 5000 + "\n")
    assert [row.id for row in open_inputs([str(tmp_path / "data")])] == ["u"]


@pytest.mark.parametrize("channel", ["1" * 5000, "1" * 10])
def test_a_channel_of_thousands_of_digits(tmp_path: Path, channel: str) -> None:
    (tmp_path / "wav.scp").write_text("r a.wav\n")
    (tmp_path / "segments").write_text(f"u r 0 1 {channel}\nv r 0 1\n")
    (tmp_path / "reco2file_and_channel").write_text(f"r r {channel}\n")
    for row in open_inputs([str(tmp_path)]):
        assert isinstance(row, RowFailure) and "expected channel" in row.message
