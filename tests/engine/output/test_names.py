from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oasr.output.name_book import NameBook
from oasr.output.names import MAX_STEM_BYTES, fold, hashed_name, safe_name

AWKWARD = [
    "../x",
    "/etc/passwd",
    "a/../../b",
    "..",
    ".",
    "",
    "a\0b",
    "a\nb",
    "a/b",
    "a\\b",
    "a_b",
    "CON",
    "con.txt",
]
AWKWARD += [
    "nul",
    "COM¹",
    "x.",
    "x ",
    " x",
    "x..",
    ".hidden",
    "é",
    "e\u0301",
    "A",
    "a",
    "ß",
    "ss",
    "🎙️",
    "👩‍👩‍👧",
    "\udcff",
]
AWKWARD += [
    "é" * 100,
    "é" * 150,
    "x" * 300,
    "x" * 301,
    "results",
    "RESULTS",
    "run",
    "a:b",
    'say "hi"',
    "C:\\x",
    "\u202egnp",
]
IDS = st.text(max_size=12) | st.sampled_from(AWKWARD) | st.text("aA.~/\\ \0e\u0301éſsSKk", max_size=4)


@pytest.mark.parametrize(
    "utterance_id",
    [
        "1272-128104-0000",
        "BAC009S0150W0123",
        "Interview No. 3",
        "café",
        "会议_01",
        "x.wav",
        "a+b=c@d",
        "🎙",
        "-x",
        "~a",
    ],
)
def test_a_good_name_is_the_id_itself(utterance_id):
    assert safe_name(utterance_id) == utterance_id


@pytest.mark.parametrize(
    ("utterance_id", "readable"),
    [("a/b", "a_b"), ("../x", "_.._x"), ("..", "_"), ("", "_"), ("con.x", "_con.x"), ("a\nb", "a_b"),
     ("x. ", "x"), ("results", "results"), ("é" * 100, "é" * 54)],
)  # fmt: skip
def test_any_other_name_stays_readable_and_gets_a_hash(utterance_id, readable):
    assert safe_name(utterance_id) == hashed_name(utterance_id)
    stem, _, digits = safe_name(utterance_id).rpartition("~")
    assert stem == readable and len(digits) == 10


@settings(deadline=None)
@given(IDS)
def test_a_name_is_one_safe_path_component(utterance_id):
    name = safe_name(utterance_id)
    assert 0 < len(name.encode("utf-8")) <= MAX_STEM_BYTES
    assert name.isprintable() and not set(name) & set('<>:"/\\|?*')
    assert name == name.strip(" ").rstrip(".") and not name.startswith(".")
    assert name.split(".")[0].casefold() not in {"con", "prn", "aux", "nul", "com1", "lpt9", "com¹"}
    assert fold(name) not in {"results", "run"}


@settings(deadline=None)
@given(st.sets(IDS, max_size=30))
@example(set(AWKWARD))
def test_two_ids_never_have_one_name(ids):
    assert len({safe_name(utterance_id) for utterance_id in ids}) == len(ids)


def test_an_id_that_looks_like_the_name_of_another_gets_a_name_of_its_own():
    assert safe_name(safe_name("a/b")) != safe_name("a/b")


@settings(deadline=None)
@given(st.lists(IDS, unique=True, max_size=30))
@example(AWKWARD)
def test_two_ids_never_share_a_file_on_any_file_system(tmp_path_factory, ids):
    folder = tmp_path_factory.mktemp("book")
    book = NameBook(folder)
    paths = [path for utterance_id in ids for path in book.claim(utterance_id, [".txt", ".json"])]
    book.close()
    assert all(path.parent == folder for path in paths)
    same_file = {unicodedata.normalize("NFC", path.name.casefold()).casefold() for path in paths}
    assert len(same_file) == len({path.name.upper() for path in paths}) == 2 * len(ids)
    again = NameBook(folder)
    assert [path for i in reversed(ids) for path in again.claim(i, [".json", ".txt"])] == paths[::-1]


def test_ids_that_differ_only_in_case_keep_their_names_across_runs(tmp_path):
    first = NameBook(tmp_path)
    assert [p.name for p in first.claim("a", [".txt"])] == ["a.txt"]
    assert [p.name for p in first.claim("A", [".txt"])] == [hashed_name("A") + ".txt"]
    first.close()
    second = NameBook(tmp_path)
    assert [p.name for p in second.claim("A", [".txt"])] == [hashed_name("A") + ".txt"]
    assert [p.name for p in second.claim("a", [".txt"])] == ["a.txt"]


def test_a_file_of_somebody_else_is_never_used_and_never_removed(tmp_path):
    (tmp_path / "a.txt").write_text("my reference")
    book = NameBook(tmp_path)
    (path,) = book.claim("a", [".txt"])
    path.write_text("transcript")
    assert path.name == hashed_name("a") + ".txt"
    book.remove_files()
    book.close()
    assert [p.name for p in tmp_path.glob("*.txt")] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "my reference"


def test_a_file_on_record_keeps_its_name_whatever_comes_and_goes_beside_it(tmp_path):
    def claim(*suffixes):
        book = NameBook(tmp_path)
        names = [path.name for path in book.claim("a", suffixes)]
        book.close()
        return names

    theirs, hashed = tmp_path / "a.json", hashed_name("a")
    assert claim(".txt") == ["a.txt"]
    theirs.write_text("mine")
    assert claim(".txt", ".json") == ["a.txt", f"{hashed}.json"]
    theirs.unlink()
    assert claim(".json", ".txt") == [f"{hashed}.json", "a.txt"]


def test_a_file_that_is_added_stands_beside_those_on_record(tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    first, hashed = NameBook(tmp_path), hashed_name("a")
    assert [p.name for p in first.claim("a", [".txt"])] == [f"{hashed}.txt"]
    assert [p.name for p in first.claim("a", [".txt", ".json"])] == [f"{hashed}.txt", f"{hashed}.json"]


def test_a_damaged_record_is_never_a_reason_to_touch_other_files(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "x").write_text("outside")
    (folder / "ours.txt").write_text("ours")
    record = folder / ".oasr-files.jsonl"
    record.write_text(
        '{"id": "x", "files": ["../x", "/etc/hostname", "..", ".", ""]}\nnot json\n[1]\n{"id": "o"}\n'
        '{"id": "o", "files": ["ours.txt"]}\n{"id": "o", "fil'
    )
    book = NameBook(folder)
    book.remove_files()
    book.claim("next", [".txt"])
    book.close()
    assert (tmp_path / "x").exists() and not (folder / "ours.txt").exists()
    assert record.read_text() == '{"id": "next", "files": ["next.txt"]}\n'
