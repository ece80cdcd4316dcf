"""The list's transcripts as Kaldi's `text`, read back by the reader of Kaldi folders."""

from __future__ import annotations

import pytest
from helpers.transcripts import row_of
from oasr.errors import OutputError
from oasr.manifest import InputOptions, open_inputs
from oasr.output.rows import failure_row
from oasr.output.run_files import check_places
from oasr.output.run_folder import RunFolder
from oasr.output.writers import build_writers
from oasr.types import RequestOutput

TEXTS = {
    "b": "two  words\n and\u3000more",
    "a-2": "",
    "a.1": "你好",
    "B": "أهلا",
    "é": "x",
    "z": None,
    "a1": "y",
}


def written(folder, texts=TEXTS) -> str:
    with RunFolder.open(folder, formats=["kaldi"]) as run:
        for index, (name, text) in enumerate(texts.items()):
            output = RequestOutput(name, text=text)
            row = row_of(output) if text is not None else failure_row({}, name, "audio", "gone")
            run.append((index, 0), name, row, output)
        run.finish()
    return (folder / "text").read_text("utf-8")


def test_a_line_a_row_sorted_by_the_bytes_of_the_id(tmp_path):
    text = written(tmp_path)
    assert text == "B أهلا\na-2\na.1 你好\na1 y\nb two words and more\né x\n"
    assert text.splitlines() == sorted(text.splitlines(), key=lambda line: line.split(" ")[0].encode())


def test_the_file_is_read_back(tmp_path):
    written(tmp_path / "out")
    data = tmp_path / "data"
    data.mkdir()
    (data / "text").write_bytes((tmp_path / "out" / "text").read_bytes())
    (data / "wav.scp").write_text("".join(f"{name} {name}.wav\n" for name in TEXTS))
    rows = {row.id: row for row in open_inputs([str(data)], InputOptions())}
    assert {name: " ".join(text.split()) for name, text in TEXTS.items() if text is not None} == {
        name: row.text for name, row in rows.items() if row.text is not None
    }


@pytest.mark.parametrize("name", ["two words", "tab\there", "wide\u3000space", " x", "x\u00a0"])
def test_white_space_in_an_id_is_refused(name):
    with pytest.raises(
        OutputError, match=r"output format 'kaldi': id .* holds white space.*give the rows ids"
    ):
        check_places(build_writers(["kaldi"]), [{"id": name}])


@pytest.mark.parametrize("name", ["caf\udce9.wav", "caf\udce8.wav"])
def test_an_id_that_is_not_utf8_is_refused(name):
    """Both would be written as `caf?.wav`."""
    with pytest.raises(OutputError, match=r"'kaldi': row 'caf\\udce..wav' .* not UTF-8: give the row an id"):
        check_places(build_writers(["kaldi"]), [{"id": name}])


def test_a_stored_row_with_such_an_id_stops_a_resume(tmp_path):
    output = RequestOutput("two words", text="x")
    with RunFolder.open(tmp_path) as run:
        run.append((0, 0), "two words", row_of(output), output)
    with pytest.raises(OutputError, match="'kaldi' cannot write the row 'two words': id"):
        RunFolder.open(tmp_path, resume=True, formats=["kaldi"])
