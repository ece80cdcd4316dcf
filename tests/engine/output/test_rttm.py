"""The list's regions of speech in NIST's form: fields, names, order."""

from __future__ import annotations

import pytest
from helpers.transcripts import row_of
from oasr.errors import OutputError
from oasr.output.rows import failure_row
from oasr.output.run_files import check_places
from oasr.output.run_folder import RunFolder
from oasr.output.writers import build_writers, render
from oasr.types import RequestOutput

OUTPUT = RequestOutput("u", text="a b", duration_s=9.0, speech=((0.5, 1.25), (2.0, 8.7654)))


def lines(row) -> list[str]:
    return render("rttm", build_writers(["rttm"])["rttm"], row, None).decode().splitlines()


def test_a_region_is_a_line_of_ten_fields():
    assert lines(row_of(OUTPUT)) == [
        "SPEAKER u 1 0.500 0.750 <NA> <NA> speech <NA> <NA>",
        "SPEAKER u 1 2.000 6.765 <NA> <NA> speech <NA> <NA>",
    ]


def test_the_row_holds_the_regions_in_seconds_of_the_recording():
    assert row_of(OUTPUT)["speech"] == [[0.5, 1.25], [2.0, 8.765]]
    assert row_of(RequestOutput("u", text="", speech=()))["speech"] == []
    assert "speech" not in row_of(RequestOutput("u", text=""), speech=[[1, 2]]), (
        "an earlier run's are dropped"
    )


def test_the_recording_is_named_as_in_ctm():
    row = row_of(OUTPUT, audio="calls/x.wav", offset=1.5, channel=1)
    assert lines(row)[0].split()[:3] == ["SPEAKER", "x", "2"]
    with pytest.raises(OutputError, match=r"output format 'rttm'.*holds white space"):
        check_places(build_writers(["rttm"]), [{"id": "two words"}])


def test_rows_without_speech_or_that_failed_have_no_lines():
    assert lines(row_of(RequestOutput("u", text="", speech=()))) == []
    assert lines(failure_row({}, "u", "audio", "gone")) == []


def test_a_row_that_nobody_looked_for_speech_in_is_refused():
    with pytest.raises(OutputError, match="without a voice activity detector; remove its line"):
        lines(row_of(RequestOutput("u", text="a")))


def test_the_file_is_sorted_by_recording_channel_and_start(tmp_path):
    rows = [
        {"id": "s2", "audio": "b.wav", "offset": 5.0},
        {"id": "s1", "audio": "b.wav", "offset": 0.0},
        {"id": "a"},
    ]
    speech = [((7.0, 9.0),), ((0.0, 2.0), (8.0, 8.5)), ((1.0, 2.0),)]
    with RunFolder.open(tmp_path, formats=["rttm"]) as run:
        for index, (row, regions) in enumerate(zip(rows, speech, strict=True)):
            output = RequestOutput(row["id"], text="x", speech=regions)
            run.append((index, 0), row["id"], row_of(output, **row), output)
        run.finish()
    found = [line.split() for line in (tmp_path / "results.rttm").read_text().splitlines()]
    assert [(f[1], float(f[3])) for f in found] == [("a", 1.0), ("b", 0.0), ("b", 7.0), ("b", 8.0)]
    assert all(len(fields) == 10 for fields in found)
