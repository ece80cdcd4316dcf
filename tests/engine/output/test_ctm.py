"""The list's words in NIST's form: fields, names, order."""

from __future__ import annotations

import json

import pytest
from helpers.transcripts import row_of, timed
from oasr.errors import OutputError
from oasr.output.rows import failure_row
from oasr.output.run_files import check_places
from oasr.output.run_folder import RunFolder
from oasr.output.writers import build_writers, render
from oasr.types import RequestOutput, WordTiming

OUTPUT = timed("a b", [WordTiming("a", 0.5, 0.75, 0.9), WordTiming("b", 1.0, 1.2345, 0.25)])


def lines(row) -> list[str]:
    return render("ctm", build_writers(["ctm"])["ctm"], row, None).decode().splitlines()


def place(row) -> str:
    return " ".join(lines({**row_of(OUTPUT), **row})[0].split()[:2])


def test_a_word_is_a_line_of_file_channel_start_duration_word_and_confidence():
    assert lines(row_of(OUTPUT)) == ["u 1 0.500 0.250 a 0.9000", "u 1 1.000 0.234 b 0.2500"]


def test_words_without_a_confidence_or_with_odd_values_are_still_records():
    words = [
        {"word": "a", "start": None, "end": None, "confidence": None},
        {"word": "b c\u3000d", "start": 2, "end": 1},
        {"word": " ", "start": 0, "end": 1},
    ]
    assert lines({"id": "u", "pred_text": "a", "words": words}) == [
        "u 1 0.000 0.000 a",
        "u 1 2.000 0.000 b_c_d",
    ]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"id": "call-7"}, "call-7 1"),
        ({"id": "call-7", "audio": "calls/x.wav"}, "call-7 1"),  # a whole recording goes by its id
        ({"id": "call-7", "audio": "calls/x.wav", "duration": 3.0}, "call-7 1"),
        ({"id": "calls/x.wav", "audio": "calls/x.wav"}, "x 1"),  # ids that were made from the path
        ({"id": "calls/x.wav@1.500+2.000", "audio_filepath": "calls/x.wav", "offset": 1.5}, "x 1"),
        ({"id": "s1", "wav": "calls/x.y.flac", "start": 0.5}, "x.y 1"),  # a stretch goes by the file
        ({"id": "s1", "audio": "x.wav", "offset": 0.5, "recording": "rec_9"}, "rec_9 1"),
        ({"id": "rec1", "audio": "sph2pipe -f wav x.sph |"}, "rec1 1"),
        ({"id": "u", "channel": 0}, "u 1"),
        ({"id": "u", "channel": 1}, "u 2"),
        ({"id": "u", "channel": "1"}, "u 2"),
        ({"id": "u", "channel": 1.0}, "u 2"),
        ({"id": "u", "channel": 0.5}, "u 1"),
        ({"id": "u", "channel": "mix"}, "u 1"),
        ({"id": "call-ch1", "audio": "x.wav", "channel": 1}, "call 2"),  # split channels
        ({"id": "x.wav-ch0", "audio": "x.wav", "channel": 0}, "x 1"),
        ({"id": "call-ch1", "audio": "x.wav"}, "call-ch1 1"),  # an id like those, of a row that was not split
        ({"id": "call-ch1", "audio": "x.wav", "channel": "split"}, "call-ch1 1"),
        ({"id": "call-ch1", "channel": 0}, "call-ch1 1"),
    ],
)
def test_the_file_is_the_recording_and_channels_count_from_one(row, name):
    assert place(row) == name


@pytest.mark.parametrize(
    "row",
    [{"id": "two words"}, {"id": "a\u3000b"}, {"id": "x", "audio": "my calls.wav", "offset": 1}, {"id": " "}],
)
def test_white_space_in_a_name_is_refused(row):
    with pytest.raises(OutputError, match=r"output format 'ctm'.*holds white space"):
        check_places(build_writers(["ctm"]), [row])


@pytest.mark.parametrize("name", ["ctm", "rttm"])
def test_a_name_that_is_not_utf8_is_refused(name):
    row = {"id": "r/caf\udce9.wav", "audio": "r/caf\udce9.wav"}
    with pytest.raises(OutputError, match=rf"'{name}': row .* is called 'caf\\udce9 1' .* not UTF-8"):
        check_places(build_writers([name]), [row])
    check_places(build_writers([name]), [row | {"recording": "café"}])


def test_two_recordings_of_one_name_are_refused_and_two_stretches_of_one_are_not():
    stretch = {"offset": 1.0}
    same = [{"id": "1", "audio": "a/x.wav"} | stretch, {"id": "2", "audio": "a/x.wav"} | stretch]
    check_places(build_writers(["ctm"]), same)
    other = {"id": "3", "audio": "b/x.wav"} | stretch
    with pytest.raises(OutputError, match=r"row '3' \(b/x.wav\) is called 'x 1' too; .*`recording`"):
        check_places(build_writers(["ctm"]), [*same, other])
    check_places(build_writers(["ctm"]), [*same, other | {"recording": "bx"}])


def test_rows_without_words():
    assert lines(failure_row({"id": "two words"}, "two words", "audio", "gone")) == []
    assert lines({"id": "u", "pred_text": ""}) == lines({"id": "u", "pred_text": "", "words": []}) == []
    with pytest.raises(
        OutputError, match=r"'ctm' cannot write the row 'u': it has a transcript without word times"
    ):
        lines({"id": "u", "pred_text": "a b"})


def stretch(name: str, audio: str, start: float) -> tuple[dict, RequestOutput]:
    output = timed(
        "a b", [WordTiming("a", start, start + 0.5, 0.9), WordTiming("b", start + 10, start + 11, 0.9)]
    )
    return row_of(output, id=name, audio=audio, offset=start), output


def test_the_file_is_sorted_as_sclite_demands_even_where_stretches_overlap(tmp_path):
    rows = [
        stretch("4", "b.wav", 5.0), stretch("1", "b.wav", 100.0), stretch("3", "B.wav", 1.0),
        stretch("2", "b.wav", 9.0), stretch("0", "a.wav", 0.0),
    ]  # fmt: skip
    failed = failure_row({"id": "5", "audio": "a b.wav"}, "5", "audio", "gone")
    with RunFolder.open(tmp_path / "out", formats=["ctm"]) as folder:
        for i, (row, output) in enumerate(rows):
            folder.append((i, 0), row["id"], row, output)
        folder.append((9, 0), "5", failed, None)
        folder.finish()
    fields = [line.split() for line in (tmp_path / "out" / "results.ctm").read_text().splitlines()]
    assert [(f[0], float(f[2])) for f in fields] == [
        ("B", 1.0), ("B", 11.0), ("a", 0.0), ("a", 10.0),
        ("b", 5.0), ("b", 9.0), ("b", 15.0), ("b", 19.0), ("b", 100.0), ("b", 110.0),
    ]  # fmt: skip
    assert fields == sorted(fields, key=lambda f: (f[0].encode(), f[1].encode(), float(f[2])))


def test_a_resumed_run_without_word_times_is_refused_before_any_work(tmp_path):
    plain = RequestOutput("u", text="a", duration_s=1.0)
    with RunFolder.open(tmp_path) as folder:
        folder.append((0, 0), "u", row_of(plain), plain)
    before = (tmp_path / "results.jsonl").read_bytes()
    with pytest.raises(OutputError, match=r"cannot write the row 'u'.*--overwrite"):
        RunFolder.open(tmp_path, resume=True, formats=["ctm"])
    assert (tmp_path / "results.jsonl").read_bytes() == before
    assert json.loads(before)["pred_text"] == "a"
