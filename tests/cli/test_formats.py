"""`oasr transcribe --format` on a fake engine: what is written, asked of the engine, and refused."""

from __future__ import annotations

import json

import pytest
import srt
import webvtt
from oasr.output.writers import WRITERS

EVERY_FORMAT = "srt,vtt,ctm,kaldi,tsv,txt,json"


def test_all_formats_at_once(oasr, engines, manifest, tmp_path):
    out = tmp_path / "out"
    done = oasr(
        "transcribe", manifest(3, '{"id": "bad", "audio": "gone.wav"}'), "-o", out, "-f", EVERY_FORMAT
    )
    assert done.code == 3 and "results.jsonl and 7 more formats" in done.err
    visible = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    rows = ("raa", "rab", "rac")
    assert visible == {f"{r}.{s}" for r in rows for s in ("srt", "vtt", "tsv", "txt", "json")} | {
        "results.ctm", "text", "results.jsonl", "run.json",
    }  # fmt: skip
    assert (out / "text").read_text() == "raa heard raa\nrab heard rab\nrac heard rac\n"
    assert (out / "results.ctm").read_text().splitlines()[0] == "raa 1 0.000 0.500 heard 0.9000"
    assert [cue.content for cue in srt.parse((out / "raa.srt").read_text())] == ["heard raa"]
    assert [cue.text for cue in webvtt.read(out / "raa.vtt")] == ["heard raa"]
    assert (out / "raa.tsv").read_text() == "start\tend\ttext\n0\t500\theard raa\n"


@pytest.mark.parametrize(
    ("flags", "asked"),
    [
        (["-f", "srt"], True), (["-f", "vtt"], True), (["-f", "tsv"], True), (["-f", "ctm"], True),
        (["-f", "json,txt,kaldi"], False), (["-f", "srt", "--no-word-timestamps"], False),
        (["-f", "json", "--word-timestamps"], True),
    ],
)  # fmt: skip
def test_formats_made_of_words_ask_for_word_times(oasr, engines, manifest, tmp_path, read_rows, flags, asked):
    assert oasr("transcribe", manifest(1), "-o", tmp_path / "out", *flags).code == 0
    assert engines[0].options.word_timestamps is asked
    assert ("words" in read_rows(tmp_path / "out")[0]) is asked


def test_a_family_that_cannot_time_words_gives_a_cue_a_segment_and_says_so(
    oasr, engines, manifest, tmp_path, monkeypatch
):
    monkeypatch.setenv("OASR_FAKE_UNTIMED", "1")
    done = oasr("transcribe", manifest(1), "-o", tmp_path / "out", "-f", "srt,tsv,txt")
    assert done.code == 0 and not engines[0].options.word_timestamps
    assert "srt,tsv: a cue for each segment, since decode family 'aed' cannot time words" in done.err
    assert (tmp_path / "out" / "raa.tsv").read_text() == "start\tend\ttext\n0\t100\theard raa\n"


def test_a_family_that_cannot_time_words_is_refused_for_ctm(oasr, engines, manifest, tmp_path, monkeypatch):
    monkeypatch.setenv("OASR_FAKE_UNTIMED", "1")
    done = oasr("transcribe", manifest(1), "-o", tmp_path / "out", "-f", "ctm,srt")
    assert done.code == 2 and engines[0].heard == []
    assert "--format ctm is made of word times, and decode family 'aed' cannot time words" in done.err


def test_the_flags_reach_the_cues(oasr, engines, manifest, tmp_path):
    flags = ["--max_line_width", "6", "--max_line_count", "1", "--highlight_words"]
    done = oasr("transcribe", manifest(1), "-o", tmp_path / "out", "-f", "srt,vtt", *flags)
    assert done.code == 0
    # Both words of the fake engine's text hang on the only one that it times.
    assert (tmp_path / "out" / "raa.srt").read_text() == "1\n00:00:00,000 --> 00:00:00,500\nheard raa\n"
    assert "STYLE\n::cue(:future)" in (tmp_path / "out" / "raa.vtt").read_text()
    done = oasr(
        "transcribe", manifest(1), "-o", tmp_path / "plain", "-f", "srt", "--no-word-timestamps",
        "--max-line-width", "6",
    )  # fmt: skip
    assert (tmp_path / "plain" / "raa.srt").read_text() == "1\n00:00:00,000 --> 00:00:00,100\nheard\nraa\n"


@pytest.mark.parametrize(
    ("rows", "name", "words"),
    [
        (['{"id": "two words", "audio": "raa.wav"}'], "kaldi", ["'two words'", "white space"]),
        (['{"id": "two words", "audio": "raa.wav"}'], "ctm", ["'two words'", "`recording`"]),
        (
            ['{"id": "x", "audio": "a/q.wav", "offset": 0}', '{"id": "y", "audio": "b/q.wav", "offset": 0}'],
            "ctm",
            ["'q 1'", "'y' (b/q.wav)", "`recording`"],
        ),
    ],
)  # fmt: skip
def test_names_that_a_format_cannot_write_are_refused_before_the_model_loads(
    oasr, engines, manifest, tmp_path, rows, name, words
):
    listed = manifest(1, *rows)
    done = oasr("transcribe", listed, "-o", tmp_path / "out", "-f", name)
    assert done.code == 2 and engines == [] and not (tmp_path / "out").exists()
    for word in ["--format", name, *words]:
        assert word in done.err
    assert oasr("transcribe", listed, "-o", tmp_path / "out", "-f", "srt").code in (0, 3)


# Stdout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("srt", "1\n00:00:00,000 --> 00:00:00,500\nheard raa\n"),
        ("txt", "heard raa\n"),
        ("kaldi", "raa heard raa\n"),
        ("ctm", "raa 1 0.000 0.500 heard 0.9000\n"),
    ],
)
def test_stdout_takes_the_document_of_one_recording(oasr, engines, manifest, name, text):
    done = oasr("transcribe", manifest(1), "-f", name)
    assert (done.code, done.out) == (0, text) and "results: stdout" in done.err


def test_stdout_takes_no_documents_of_several_recordings(oasr, engines, manifest):
    done = oasr("transcribe", manifest(2), "-f", "srt")
    assert done.code == 2 and engines == [] and "--format srt" in done.err and "--output-dir" in done.err


def test_a_recording_that_fails_leaves_nothing_on_stdout(oasr, engines, manifest):
    done = oasr("transcribe", manifest(0, '{"id": "gone", "audio": "gone.wav"}'), "-f", "vtt")
    assert (done.code, done.out) == (1, "") and "gone.wav" in done.err


def test_a_row_that_turns_into_two_is_told_apart_on_stdout(oasr, engines, manifest, wav):
    wav("two.wav", channels=2)
    row = json.dumps({"id": "two", "audio": "two.wav", "channel": "split"})
    done = oasr("transcribe", manifest(0, row), "-f", "txt")
    assert (done.code, done.out) == (1, "heard two-ch0\n") and "'two-ch1' is a second one" in done.err


# Resume ---------------------------------------------------------------------------------------


def test_formats_first_asked_for_on_resume_are_those_of_an_unbroken_run(oasr, engines, manifest, tmp_path):
    listed, whole, broken = manifest(6), tmp_path / "whole", tmp_path / "broken"
    assert oasr("transcribe", listed, "-o", whole, "-f", EVERY_FORMAT).code == 0
    broken.mkdir()
    lines = (whole / "results.jsonl").read_bytes().splitlines(keepends=True)
    (broken / "results.jsonl").write_bytes(b"".join(lines[3:]))
    assert oasr("transcribe", listed, "-o", broken, "--resume", "-f", EVERY_FORMAT).code == 0
    assert engines[1].heard and set(engines[1].heard) <= {"raa", "rab", "rac"}
    for path in whole.iterdir():
        if path.name not in (".oasr-files.jsonl", "run.json"):
            assert (broken / path.name).read_bytes() == path.read_bytes()


def test_rows_done_before_without_word_times(oasr, engines, manifest, tmp_path):
    listed, out = manifest(2), tmp_path / "out"
    assert oasr("transcribe", listed, "-o", out).code == 0
    done = oasr("transcribe", listed, "-o", out, "--resume", "-f", "srt")
    assert done.code == 0 and "2 rows of the earlier run without word times" in done.err
    assert (out / "raa.srt").read_text() == "1\n00:00:00,000 --> 00:00:00,100\nheard raa\n"
    done = oasr("transcribe", listed, "-o", out, "--resume", "-f", "ctm")
    assert done.code == 2 and "cannot write the row 'raa'" in done.err and "--overwrite" in done.err
    assert len(engines) == 2  # refused before the model is loaded


# N-best and formats of others -----------------------------------------------------------------


def test_an_n_best_list_is_in_the_rows(oasr, engines, manifest):
    done = oasr("transcribe", manifest(1), "--n-best", "2")
    assert done.rows[0]["nbest"] == [{"text": "heard raa", "score": -1.0}, {"text": "hoard", "score": -2.0}]
    assert "nbest" not in oasr("transcribe", manifest(1)).rows[0]
    done = oasr("transcribe", manifest(1), "--n-best", "3")
    assert done.code == 2 and "at most 2 hypotheses" in done.err and engines[2].heard == []


class Shout:
    """A format of another package, written for an engine without subtitles."""

    scope, suffix = "utterance", ".shout"

    def render(self, row, output):
        return row["pred_text"].upper()


def test_a_format_of_another_package_works_without_knowing_of_settings(
    oasr, engines, manifest, tmp_path, monkeypatch
):
    monkeypatch.setitem(WRITERS._loaded, "shout", Shout)
    done = oasr("transcribe", manifest(1), "-o", tmp_path / "out", "-f", "shout,srt", "--max-line-width", "9")
    assert done.code == 0 and (tmp_path / "out" / "raa.shout").read_text() == "HEARD RAA"
    done = oasr("transcribe", manifest(1), "-o", tmp_path / "no", "-f", "shout", "--max-line-width", "9")
    assert done.code == 2 and "--max-line-width: shapes the cues" in done.err
