from __future__ import annotations

import pytest
from oasr.errors import ManifestError
from oasr.manifest.transcripts import Transcript, TranscriptFile
from oasr.scoring.samples import Sample, id_list, match


def file(path: str, **rows: str | tuple[str | None, str | None] | None) -> TranscriptFile:
    """id=text, or id=(text, reference)."""
    pairs = {name: row if isinstance(row, tuple) else (row, None) for name, row in rows.items()}
    return TranscriptFile(
        path, {name: Transcript(name, text, reference) for name, (text, reference) in pairs.items()}
    )


REFERENCES = file("ref", a=(None, "A"), b=(None, "B"), c=(None, ""))


def test_texts_meet_by_id_in_the_order_of_the_hypotheses():
    samples, left_out = match([file("hyp", c="x", a="a", b=None)], REFERENCES)
    assert [(s.id, s.reference, s.hypotheses) for s in samples] == [
        ("c", "", ("x",)), ("a", "A", ("a",)), ("b", "B", (None,)),
    ]  # fmt: skip
    assert left_out == []


def test_rows_carry_their_own_references():
    samples, _ = match([file("hyp", a=("x", "A"), b=(None, "B"))], None)
    assert samples == [Sample("a", "A", ("x",)), Sample("b", "B", (None,))]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"a": "", "b": ""}, "hyp: expected the ids of ref; 1 missing: c"),
        ({"a": "", "b": "", "c": "", "d": "", "e": ""}, "hyp: expected the ids of ref; 2 too many: d, e"),
        ({"a": "", "d\n": ""}, r"hyp: expected the ids of ref; 2 missing: b, c; 1 too many: 'd\n'"),
        (
            {"d": "", "e": ""},
            "hyp and ref have no id in common: expected such as a, found such as d; are they of one list?",
        ),
    ],
)
def test_missing_and_extra_ids_are_listed(rows, said):
    with pytest.raises(ManifestError) as error:
        match([file("hyp", **rows)], REFERENCES)
    assert str(error.value) == said


def test_the_second_file_must_have_the_ids_of_the_first():
    with pytest.raises(ManifestError, match="two: expected the ids of one; 1 missing: b"):
        match([file("one", a=("x", "A"), b=("y", "B")), file("two", a=("x", "A"))], None)


def test_rows_without_a_reference_are_listed():
    with pytest.raises(ManifestError, match=r"expected a reference in every row; 1 lack one: b; .*--ref"):
        match([file("hyp", a=("x", "A"), b=("y", None))], None)
    with pytest.raises(ManifestError, match="hyp: expected a reference in every row; none has one"):
        match([file("hyp", a="x", b="y")], None)
    with pytest.raises(ManifestError) as error:
        match([file("hyp", a="x")], file("ref", a=(None, None)))
    assert str(error.value) == "ref: expected a reference in every row; none has one"


def test_two_files_with_different_references_are_refused_unless_a_third_decides():
    files = [file("one", a=("x", "A"), b=("y", "B")), file("two", a=("x", "A"), b=("y", "C"))]
    with pytest.raises(ManifestError, match=r"one and two carry different references for 1 ids: b; .*--ref"):
        match(files, None)
    samples, _ = match(files, file("ref", a=(None, "1"), b=(None, "2")))
    assert [s.reference for s in samples] == ["1", "2"]


def test_leaving_out_takes_a_row_from_all_systems_with_or_without_reference():
    files = [
        file("one", a=("x", "A"), b=(None, "B"), c=("z", "C")),
        file("two", a=(None, "A"), b="", c=("", "C")),
    ]
    samples, left_out = match(files, None, leave_out_failed=True)
    assert (samples, left_out) == ([Sample("c", "C", ("z", ""))], ["b", "a"])
    lost = file("hyp", a="x", b="y", c="z", **{"list.jsonl:4": None})
    assert match([lost], REFERENCES, leave_out_failed=True)[1] == ["list.jsonl:4"]
    with pytest.raises(ManifestError, match=r"1 too many: list.jsonl:4"):
        match([lost], REFERENCES)
    assert match([file("hyp", a=(None, None))], None, leave_out_failed=True) == ([], ["a"])


def test_the_reference_says_language_and_keys_before_the_hypotheses_do():
    rows = [Transcript("a", "x", "A", language=code, row={"k": code, "own": 1}) for code in ("en", "nn")]
    files = [TranscriptFile(f"{i}", {"a": row}) for i, row in enumerate(rows)]
    (sample,), _ = match(files, None)
    assert (sample.language, sample.keys) == ("en", {"k": "en", "own": 1})
    reference = TranscriptFile("ref", {"a": Transcript("a", None, "A", language="de", row={"k": "ref"})})
    (sample,), _ = match(files, reference)
    assert (sample.language, sample.keys) == ("de", {"k": "ref", "own": 1})


def test_long_lists_of_ids_are_cut_and_counted():
    assert id_list(str(i) for i in range(103)).endswith("98, 99 and 3 more")
