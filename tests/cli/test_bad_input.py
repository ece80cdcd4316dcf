"""Every kind of bad input through the command: which exit code, which row says why, and nothing lost."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fake_oasr.py")


def stage(rows, row_id):
    (row,) = (row for row in rows if row["id"] == row_id)
    assert ("error" in row) != ("pred_text" in row)
    return row["error"]["stage"] if "error" in row else None


def _header_only(path: Path) -> None:
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 16000, 32000, 2, 16)
    path.write_bytes(b"RIFF" + struct.pack("<I", 36) + b"WAVE" + fmt + b"data" + struct.pack("<I", 0))


def _folder(path: Path) -> None:
    path.mkdir()


BAD_FILES = {
    "zero_bytes": lambda path: path.write_bytes(b""),
    "header_only": _header_only,
    "html": lambda path: path.write_text("<!doctype html><html><body>404 not found</body></html>"),
    "folder": _folder,
    "missing": lambda path: None,
    "dangling_link": lambda path: path.symlink_to("nowhere.wav"),
    "text": lambda path: path.write_text("this is no audio at all\n" * 50),
    "noise_bytes": lambda path: path.write_bytes(bytes(range(256)) * 16),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_recording_is_one_error_row_among_good_ones(oasr, engines, manifest, tmp_path, kind):
    BAD_FILES[kind](tmp_path / "x.wav")
    done = oasr("transcribe", manifest(3, '{"id": "x", "audio": "x.wav", "mine": [1]}'))
    assert done.code == 3
    assert [row["id"] for row in done.rows] == ["raa", "rab", "rac", "x"]
    assert stage(done.rows, "x") == "audio"
    assert done.rows[3]["mine"] == [1] and done.rows[3]["error"]["message"]
    assert sum("pred_text" in row for row in done.rows) == 3
    assert "3 ok, 1 failed" in done.err


@pytest.mark.parametrize("kind", ["zero_bytes", "html", "missing", "folder"])
def test_a_bad_recording_alone_leaves_nothing_usable(oasr, engines, tmp_path, kind):
    BAD_FILES[kind](tmp_path / "x.wav")
    target = tmp_path / "x.wav"
    if kind == "folder":  # named on the command line it is searched for recordings, and has none
        done = oasr("transcribe", target)
        assert done.code == 2 and "no recording" in done.err
        return
    done = oasr("transcribe", target)
    assert done.code == 1 and stage(done.rows, str(target)) == "audio"


def test_a_file_without_read_permission(oasr, engines, manifest, wav, tmp_path):
    wav("x.wav").chmod(0)
    if os.access(tmp_path / "x.wav", os.R_OK):
        pytest.skip("this user may read everything")
    done = oasr("transcribe", manifest(1, '{"id": "x", "audio": "x.wav"}'))
    assert done.code == 3 and stage(done.rows, "x") == "audio"
    assert "ermission" in done.rows[1]["error"]["message"]


@pytest.mark.parametrize("samples", [1, 10, 200, 400])
def test_very_short_clips_come_out(oasr, engines, wav, samples):
    clip = wav("short.wav", samples=samples)
    done = oasr("transcribe", clip)
    assert done.code == 0 and [stage(done.rows, str(clip))] == [None]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ('"offset": 99', "audio"),
        ('"duration": -1', "manifest"),
        ('"offset": -1', "manifest"),
        ('"duration": NaN', "manifest"),
        ('"offset": Infinity', "manifest"),
        ('"duration": "long"', "manifest"),
        ('"channel": "left"', "manifest"),
        ('"channel": 7', "audio"),
        ('"task": "sing"', "manifest"),
    ],
)
def test_a_value_that_cannot_be_fails_its_row(oasr, engines, manifest, fields, where):
    done = oasr("transcribe", manifest(2, f'{{"id": "x", "audio": "raa.wav", {fields}}}'))
    assert done.code == 3 and len(done.rows) == 3
    assert stage(done.rows, "x") == where
    if where == "manifest":
        assert "list.jsonl:3" in done.rows[2]["error"]["message"]


@pytest.mark.parametrize("line", ['{"id": "x", "audio": ', '["x", "raa.wav"]', "17", '{"id": "x"}', "null"])
def test_a_line_that_is_no_row_fails_alone_in_the_middle(oasr, engines, manifest, line):
    listed = manifest(2)
    first, second = listed.read_text().splitlines()
    listed.write_text(f"{first}\n{line}\n{second}\n")
    done = oasr("transcribe", listed)
    assert done.code == 3
    assert [("pred_text" in row) for row in done.rows] == [True, False, True]
    assert done.rows[1]["error"]["stage"] == "manifest"
    assert "list.jsonl:2" in done.rows[1]["error"]["message"]


def test_duplicate_ids_are_refused_before_the_model_loads(oasr, engines, manifest, tmp_path):
    done = oasr("transcribe", manifest(3, '{"id": "rab", "audio": "raa.wav"}'), "-o", tmp_path / "out")
    assert done.code == 2 and engines == [] and not (tmp_path / "out").exists()
    assert "'rab'" in done.err and "list.jsonl:2" in done.err and "list.jsonl:4" in done.err


def test_a_channel_that_would_go_by_another_rows_id_is_refused(oasr, engines, manifest, tmp_path):
    listed = manifest(1, '{"id": "raa-ch1", "audio": "raa.wav"}', '{"id": "-ch0", "audio": "raa.wav"}')
    done = oasr("transcribe", listed, "--channel", "split", "-o", tmp_path / "out")
    assert done.code == 2 and engines == [] and not (tmp_path / "out").exists()
    assert "'raa'" in done.err and "'raa-ch1'" in done.err
    assert oasr("transcribe", listed, "-o", tmp_path / "out").code == 0


@pytest.mark.parametrize("word", ['"split"', r'"s\u0070lit"'])
def test_so_is_a_channel_that_only_its_own_row_asks_for(oasr, engines, manifest, tmp_path, word):
    apart = f'{{"audio": "raa.wav", "channel": {word}, "id": "x"}}'
    for names in (("x-ch0",), ("y", "x-ch12", "z")):
        others = [json.dumps({"id": name, "audio": "raa.wav"}) for name in names]
        for listed in (manifest(1, apart, *others), manifest(1, *others, "", apart)):
            done = oasr("transcribe", listed, "-o", tmp_path / "out")
            assert done.code == 2 and engines == [] and not (tmp_path / "out").exists()
            assert f"'{names[len(names) // 2]}'" in done.err and "row 'x'" in done.err
    # A row whose channels are mixed has no such names, and what only mentions the word is not split.
    listed = manifest(
        1, '{"id": "x", "audio": "raa.wav", "note": "split"}', '{"id": "x-ch0", "audio": "raa.wav"}'
    )
    assert oasr("transcribe", listed, "-o", tmp_path / "out").code == 0


@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_an_empty_manifest_is_refused(oasr, engines, tmp_path, text):
    (tmp_path / "empty.jsonl").write_text(text)
    done = oasr("transcribe", tmp_path / "empty.jsonl")
    assert done.code == 2 and "no rows" in done.err and engines == []


def test_a_manifest_that_is_not_there(oasr, engines, tmp_path):
    done = oasr("transcribe", tmp_path / "gone.jsonl")
    assert done.code == 2 and "gone.jsonl" in done.err and engines == []


def test_hostile_ids_keep_their_rows_and_files_apart(oasr, engines, manifest, tmp_path, read_rows):
    names = [
        "a/b",
        "a_b",
        "../up",
        'qu"ote',
        "new\nline",
        "🎤 emoji",
        "A_B",
        "con",
        "nul\x00byte",
        "x" * 400,
        ".",
    ]
    rows = [json.dumps({"id": name, "audio": "raa.wav"}) for name in names]
    out = tmp_path / "out"
    done = oasr("transcribe", manifest(1, *rows), "-o", out, "-f", "txt")
    assert done.code == 0
    assert [row["id"] for row in read_rows(out)] == ["raa", *names]
    texts = {path.read_text().removesuffix("\n") for path in out.glob("*.txt")}
    assert texts == {f"heard {name}" for name in ["raa", *names]}
    assert not list(tmp_path.glob("up*"))


def test_equal_names_in_two_folders(oasr, engines, wav, tmp_path):
    one, other = wav("a/x.wav"), wav("b/x.wav")
    done = oasr("transcribe", one, other, "-o", tmp_path / "out", "-f", "txt")
    assert done.code == 0 and len(list((tmp_path / "out").glob("*.txt"))) == 2


# Where the results go ----------------------------------------------------------------------------


def test_an_output_folder_in_use_is_refused_early(oasr, engines, manifest, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    done = oasr("transcribe", manifest(1), "-o", out)
    assert done.code == 2 and "--resume" in done.err and "--overwrite" in done.err and engines == []
    assert oasr("transcribe", manifest(1), "-o", out, "--overwrite").code == 0
    assert (out / "precious.txt").read_text() == "mine"


def test_an_output_that_is_the_manifest_is_refused(oasr, engines, manifest, tmp_path):
    listed = manifest(2)
    before = listed.read_bytes()
    done = oasr("transcribe", listed, "-o", listed, "--overwrite")
    assert done.code == 2 and engines == []
    home = manifest(2, name="results.jsonl")
    done = oasr("transcribe", home, "-o", tmp_path, "--overwrite")
    assert done.code == 2 and "would replace" in done.err and engines == []
    assert listed.read_bytes() == before == home.read_bytes()


def test_a_folder_that_cannot_be_written_is_found_early(oasr, engines, manifest, tmp_path):
    (tmp_path / "file").write_text("")
    done = oasr("transcribe", manifest(1), "-o", tmp_path / "file" / "out")
    assert done.code == 2 and engines == []
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    if os.access(locked, os.W_OK):
        locked = Path("/proc/1")  # no user may create files there
        if not locked.is_dir():
            pytest.skip("this user may write everywhere")
    for flags in ((), ("--overwrite",)):
        done = oasr("transcribe", manifest(1), "-o", locked / "out", *flags)
        assert done.code == 2 and str(locked) in done.err and engines == []


def _limited(args, env, limit):
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, str(SCRIPT), *map(str, args)]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, preexec_fn=limit_files, timeout=280
    )


def test_a_full_disk_breaks_the_run_and_loses_nothing(
    oasr, engines, manifest, tmp_path, child_env, read_rows
):
    listed, out = manifest(24), tmp_path / "out"
    done = _limited(["transcribe", listed, "-o", out], child_env, 2048)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "--resume" in done.stderr
    saved = read_rows(out)
    assert 4 <= len(saved) < 24 and all("pred_text" in row for row in saved)
    assert oasr("transcribe", listed, "-o", out, "--resume").code == 0
    assert oasr("transcribe", listed, "-o", tmp_path / "whole").code == 0
    assert (out / "results.jsonl").read_bytes() == (tmp_path / "whole" / "results.jsonl").read_bytes()


def test_a_full_file_system(oasr, engines, manifest, tmp_path, read_rows):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if (
        os.geteuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True).returncode
    ):
        pytest.skip("mounting a small file system needs more rights")
    try:
        done = oasr("transcribe", manifest(80), "-o", disk / "out")
        assert done.code == 1 and "No space left" in done.err and "--resume" in done.err
        assert all("pred_text" in row for row in read_rows(disk / "out"))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


# Flags -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--dtype", "float8"], ["--dtype", "bfloat16"]),
        (["--batch-size", "0"], ["--batch-size", "> 0"]),
        (["--batch-size", "many"], ["--batch-size", "integer"]),
        (["--batch-seconds", "-1"], ["--batch-seconds"]),
        (["--batch-seconds", "inf"], ["--batch-seconds", "> 0"]),
        (["--batch-seconds", "nan"], ["--batch-seconds", "> 0"]),
        (["--workers", "0"], ["--workers"]),
        (["--temperature", "-1"], ["--temperature"]),
        (["--top-p", "2"], ["--top-p"]),
        (["--n-best", "0"], ["--n-best"]),
        (["--task", "sing"], ["--task", "translate"]),
        (["--channel", "left"], ["--channel", "mix, split"]),
        (["--channel", "1" * 5000], ["--channel", "mix, split"]),
        (["--log-level", "loud"], ["--log-level", "debug"]),
        (["--model", "nosuch"], ["--model", "nosuch", "tiny.en"]),
        (["--decoder-type", "viterbi"], ["--decoder-type", "ctc_wfst"]),
        (["--decode-option", "window"], ["--decode-option", "KEY=VALUE"]),
        (["--decode-option", "window=a", "--decode-option", "window=b"], ["'a'", "'b'"]),
        (["-f", "srt9", "-o", "OUT"], ["srt9", "jsonl", "txt"]),
        (["-f", "json,,txt", "-o", "OUT"], ["--format"]),
        (["--audio-root", "/no/such/folder"], ["--audio-root", "/no/such/folder"]),
        (["--no-such-flag"], ["--no-such-flag"]),
        (["--resume", "--overwrite", "-o", "OUT"], ["--resume", "--overwrite"]),
        (["--resume"], ["--resume", "--output-dir"]),
        (["--overwrite"], ["--overwrite", "--output-dir"]),
        (["-f", "txt,json"], ["--format", "--output-dir", "one format"]),
        (["-f", "srt", "--channel", "split"], ["--format srt", "--output-dir"]),
        (["--max-line-width", "0", "-f", "srt"], ["--max-line-width", "1..1000"]),
        (["--cue-pause", "-1", "-f", "srt"], ["--cue-pause", "seconds"]),
        (["--max-cue-duration", "0.1", "-f", "srt"], ["--max-cue-duration", "0.833"]),
        (["--max-line-count", "3", "--cue-gap", "0"], ["--max-line-count, --cue-gap", "srt, vtt and tsv"]),
        (["--highlight-words", "-f", "srt"], ["--highlight-words", "vtt"]),
        (["--highlight-words", "-f", "vtt", "--no-word-timestamps"], ["--highlight-words", "--no-word-"]),
        (["-f", "ctm", "--no-word-timestamps"], ["--format ctm", "--no-word-timestamps"]),
        (["--reference-field", "gold"], ["--reference-field", "--wer"]),
        (["--top-k", "5"], ["--top-k", "--temperature"]),
        (["--top-p", "0.5"], ["--top-p", "--temperature"]),
        (["--decoder-type", "ctc_wfst", "--decode-method", "aed"], ["--decoder-type", "--decode-method aed"]),
    ],
)
def test_flags_that_cannot_be_are_refused_before_the_model_loads(
    oasr, engines, manifest, tmp_path, flags, words
):
    flags = [str(tmp_path / "out") if flag == "OUT" else flag for flag in flags]
    done = oasr("transcribe", manifest(1), *flags)
    assert done.code == 2 and done.out == "" and engines == []
    for word in words:
        assert word in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--language", "xx"], ["'xx'", "en, de"]),
        (["--decode-method", "transducer"], ["transducer"]),
        (["--decode-option", "beam=4"], ["beam", "window"]),
    ],
)
def test_what_the_checkpoint_cannot_do_is_refused_before_work(
    oasr, engines, manifest, tmp_path, flags, words
):
    done = oasr("transcribe", manifest(1), *flags, "-o", tmp_path / "out")
    assert done.code == 2 and done.out == ""
    for word in words:
        assert word in done.err
    assert not any(engine.heard for engine in engines)
    assert oasr("transcribe", manifest(1), "-o", tmp_path / "out").code == 0  # the folder is still free


@pytest.mark.parametrize(
    ("closed", "to_folder", "code"), [("2>&-", True, 0), (">&- 2>&-", True, 0), (">&-", False, 1)]
)
def test_closed_standard_streams(manifest, tmp_path, child_env, read_rows, closed, to_folder, code):
    where = ["-o", tmp_path / "out"] if to_folder else []
    command = shlex.join(map(str, [sys.executable, SCRIPT, "transcribe", manifest(2), *where]))
    done = subprocess.run(
        ["sh", "-c", f"{command} {closed}"], env=child_env, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == code
    if to_folder:
        assert [row["id"] for row in read_rows(tmp_path / "out")] == ["raa", "rab"]
    else:
        assert "stdout is closed" in done.stderr and "--output-dir" in done.stderr


def test_no_input_at_all_is_usage(oasr, engines):
    assert oasr("transcribe").code == 2
