"""Files to be scored: every format, the same texts by id; every fault an error that names its line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from oasr.errors import ManifestError
from oasr.manifest.transcripts import read_hypotheses, read_references

TEXTS = {"spk-1": "hello there", "spk-2": "", "日本-3": "ok (laughs) now"}


def jsonl(path: Path, *rows: dict) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def results(tmp_path: Path) -> str:
    rows = [{"id": name, "text": f"ref {name}", "pred_text": text} for name, text in TEXTS.items()]
    return jsonl(tmp_path / "results.jsonl", *rows)


def texts(path: str) -> dict[str, str | None]:
    return {name: row.text for name, row in read_hypotheses(path).rows.items()}


def test_result_rows(results, tmp_path):
    assert texts(results) == texts(str(tmp_path)) == TEXTS
    rows = read_references(results).rows
    assert {name: row.reference for name, row in rows.items()} == {name: f"ref {name}" for name in TEXTS}
    assert rows["spk-1"].origin == f"{results}:1"


def test_standard_input_and_pipes_are_read_once(results, monkeypatch):
    stream = io.BytesIO(Path(results).read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    assert texts("-") == TEXTS


@pytest.mark.parametrize("name", ["text", "hyp.txt"])
def test_kaldi_text(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbfspk-1\thello  there \r\n\nspk-2\n" + "日本-3 ok (laughs) now".encode())
    assert texts(str(path)) == {**TEXTS, "spk-1": "hello  there"}
    references = read_references(str(path)).rows
    assert {name: (row.text, row.reference) for name, row in references.items()}["spk-2"] == (None, "")


def test_only_ascii_white_space_parts_an_id_from_its_words_as_in_a_list(tmp_path):
    path = tmp_path / "text"
    path.write_text("a\u00a0b \t hello\n\u3000\n\x1c\n\x1cc\u2003d \v\n", encoding="utf-8")
    assert texts(str(path)) == {"a\u00a0b": "hello", "\u3000": "", "\x1c": "", "\x1cc\u2003d": ""}
    path.write_text("hello (a\u00a0b)\n", encoding="utf-8")
    assert texts(str(path)) == {"a\u00a0b": "hello"}


@pytest.mark.parametrize("name", ["hyp.trn", "hyp", "HYP.TRN"])
def test_trn(name, tmp_path):
    lines = [";; made by hand", *(f"{text} ({key})" for key, text in TEXTS.items())]
    path = tmp_path / name
    path.write_text("\n".join(lines), encoding="utf-8")
    assert texts(str(path)) == TEXTS


def test_what_a_trn_cannot_mean(tmp_path):
    path = tmp_path / "hyp.trn"
    path.write_text("hello\t(spk-1)\n")
    assert texts(str(path)) == {"spk-1": "hello"}
    path.write_text("hello (spk-1)\nno id here\n")
    with pytest.raises(ManifestError, match=r"hyp.trn:2: expected words and then an id in brackets"):
        read_hypotheses(str(path))
    path.write_text("{ hello / hallo } you (spk-1)\n")
    with pytest.raises(ManifestError, match=r"hyp.trn:1: alternatives in braces are not understood"):
        read_hypotheses(str(path))


def test_a_kaldi_folder_brings_speakers_and_languages(tmp_path):
    for name, line in (("text", "u1 hello there"), ("utt2spk", "u1 anna"), ("utt2lang", "u1 en")):
        (tmp_path / name).write_text(line + "\n")
    (row,) = read_references(str(tmp_path)).rows.values()
    assert (row.reference, row.language) == ("hello there", "en")
    assert row.row == {"id": "u1", "speaker": "anna", "language": "en"}


@pytest.mark.parametrize("table", ["utt2spk", "utt2lang"])
def test_a_table_that_has_an_id_twice_is_refused(tmp_path, table):
    (tmp_path / "text").write_text("u1 hello\nu2 there\n")
    (tmp_path / table).write_text("u1 x\n\nu2 x\nu1 y\n")
    with pytest.raises(ManifestError, match=rf"two lines have the id 'u1': .*{table}:1 and .*{table}:4"):
        read_references(str(tmp_path))


def test_nemo_rows_go_by_the_ids_that_a_run_would_give_them(tmp_path):
    rows = [
        {"audio_filepath": "a/x.wav", "duration": 3.0, "text": "t", "pred_text": "p", "lang": "en"},
        {
            "audio_filepath": "a/x.wav",
            "offset": 12.5,
            "duration": 3,
            "text": "t2",
            "pred_text": "",
            "task": "asr",
        },
    ]
    found = read_hypotheses(jsonl(tmp_path / "nemo.json", *rows)).rows
    assert {name: (row.text, row.reference, row.language) for name, row in found.items()} == {
        "a/x.wav": ("p", "t", "en"),
        "a/x.wav@12.500+3.000": ("", "t2", None),
    }


def test_a_failed_row_has_its_reason_and_no_text(tmp_path):
    rows = [
        {"id": "a", "text": "t", "error": {"stage": "audio", "message": "no such file"}},
        {"id": "b", "error": "broken"},
        {"id": "c", "error": None, "pred_text": "fine"},
    ]
    found = read_hypotheses(jsonl(tmp_path / "r.jsonl", *rows)).rows
    assert [(row.text, row.error) for row in found.values()] == [
        (None, "no such file"), (None, "broken"), ("fine", None),
    ]  # fmt: skip


def test_another_field_holds_the_reference(tmp_path):
    path = jsonl(tmp_path / "r.jsonl", {"id": "a", "text": "t", "clean": "c", "pred_text": "p"}, {"id": "b"})
    rows = read_references(path, "clean").rows
    assert (rows["a"].reference, rows["b"].reference) == ("c", None)
    (tmp_path / "text").write_text("a b\n")
    with pytest.raises(ManifestError, match="--reference-field clean names nothing"):
        read_references(str(tmp_path / "text"), "clean")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"id": "a", "pred_text": "x"}\n' * 2, r"two rows have the id 'a': .*:1 and .*:2"),
        ('{"id": "a", "text": "x"}', r"r.jsonl:1 \(id=a\): expected pred_text or error, found the keys id"),
        ('{"id": "a", "pred_text": 3}', "r.jsonl:1: pred_text: expected a string, found 3"),
        ('{"id": "a", "text": 3, "pred_text": ""}', "r.jsonl:1: text: expected a string, found 3"),
        ('{"pred_text": "x"}', "r.jsonl:1: no recording named"),
        ('{"id": "a", "pred_text": "x"}\n{"id": ', "r.jsonl:2: expected one JSON object on the line"),
        ("[1]", "r.jsonl:1: expected one JSON object on the line, found an array"),
        ("\n \n", "no rows in .*r.jsonl"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_never_skipped(content, said, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(ManifestError, match=said):
        read_hypotheses(str(path))


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(ManifestError, match="nope: cannot be read: No such file"):
        read_hypotheses(str(tmp_path / "nope"))
    with pytest.raises(ManifestError, match=r"expected results.jsonl or text in this folder, found neither"):
        read_references(str(tmp_path))
    (tmp_path / "text").write_bytes(b"a ok\nb \xff\n")
    with pytest.raises(ManifestError, match="text:2: expected UTF-8, found byte 0xff at byte 3 of the line"):
        read_references(str(tmp_path / "text"))
    (tmp_path / "twice").write_bytes(b"a ok\na no\n")
    with pytest.raises(ManifestError, match=r"two rows have the id 'a': .*twice:1 and .*twice:2"):
        read_references(str(tmp_path / "twice"))
