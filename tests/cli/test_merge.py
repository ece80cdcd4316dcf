"""`--shard` and `oasr merge`: the shards of a list, put together, are the run over the whole list."""

from __future__ import annotations

import json

import pytest

FORMATS = ("-f", "txt,srt,ctm,kaldi")
LAST = '{"id": "gone", "audio": "gone.wav"}'


@pytest.fixture
def shards(oasr, engines, manifest, tmp_path):
    """Run a list as `count` shards: (list, folders)."""

    def run(count: int, rows: int = 8, *flags):
        listed = manifest(rows, LAST)
        folders = [tmp_path / f"s{index}" for index in range(count)]
        for index, folder in enumerate(folders):
            done = oasr("transcribe", listed, "-o", folder, "--shard", f"{index}/{count}", *flags)
            assert done.code in (0, 1, 3), done.err
        return listed, folders

    return run


def _files(folder):
    skipped = ("run.json", ".oasr-files.jsonl")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in skipped}


@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_merged_shards_are_the_unbroken_run(oasr, shards, tmp_path, count):
    listed, folders = shards(count, 8, *FORMATS, "--max-line-width", "20")
    done = oasr("merge", *reversed(folders), "-o", tmp_path / "all")
    assert done.code == 3 and f"rows: 8 ok, 1 failed · {count} shards" in done.err and done.out == ""
    assert oasr("transcribe", listed, "-o", tmp_path / "w", *FORMATS, "--max-line-width", "20").code == 3
    assert _files(tmp_path / "all") == _files(tmp_path / "w")
    merged, whole = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("all", "w"))
    for key in ("state", "list", "settings", "model", "counts", "results_per_row"):
        assert merged[key] == whole[key], key
    assert merged["merged"] == [str(folder) for folder in folders]


def test_split_channels_keep_their_row(oasr, engines, wav, tmp_path):
    for number in range(5):
        wav(f"in/{number}.wav", channels=1 + number % 2)
    command = ["transcribe", tmp_path / "in", "--channel", "split", "-o"]
    for index in range(3):
        assert oasr(*command, tmp_path / f"s{index}", "--shard", f"{index}/3").code == 0
    assert oasr(*command, tmp_path / "w").code == 0
    assert oasr("merge", *(tmp_path / f"s{i}" for i in range(3)), "-o", tmp_path / "all").code == 0
    assert _files(tmp_path / "all") == _files(tmp_path / "w")


def test_a_merged_folder_can_be_resumed(oasr, engines, shards, tmp_path, wav):
    listed, folders = shards(2)
    assert oasr("merge", *folders, "-o", tmp_path / "all").code == 3
    wav("gone.wav")
    assert oasr("transcribe", listed, "-o", tmp_path / "all", "--retry-failed").code == 0
    assert engines[-1].heard == ["gone"]


def test_a_format_that_the_merge_added_is_written_by_the_runs_that_go_on(oasr, shards, tmp_path, wav):
    listed, folders = shards(2, 8, "-f", "kaldi")
    assert oasr("merge", *folders, "-o", tmp_path / "all", "-f", "txt,kaldi").code == 3
    record = json.loads((tmp_path / "all" / "run.json").read_text())
    assert record["settings"]["--format"] == ["kaldi", "txt"]
    wav("gone.wav")
    assert oasr("transcribe", listed, "-o", tmp_path / "all", "--retry-failed").code == 0
    assert (tmp_path / "all" / "gone.txt").exists()


@pytest.mark.parametrize("index", [0, 1])
def test_two_recordings_of_one_name_in_two_shards_are_refused_before_the_work(
    oasr, engines, manifest, tmp_path, index
):
    listed = manifest(0, *(json.dumps({"audio": f"{folder}/x.wav"}) for folder in "ab"))
    out = tmp_path / "out"
    done = oasr("transcribe", listed, "-o", out, "-f", "ctm", "--shard", f"{index}/2")
    assert done.code == 2 and "'x 1'" in done.err and engines == [] and not out.exists()


@pytest.mark.parametrize(
    ("name", "row", "reason"),
    [
        ("kaldi", {"id": "two words", "audio": "raa.wav"}, "holds white space"),
        ("ctm", {"id": "u", "audio": "raa.wav"}, "without word times"),
        ("rttm", {"id": "u", "audio": "raa.wav"}, "without a voice activity detector"),
    ],
)
def test_a_format_that_the_rows_cannot_have_is_refused_before_anything_is_written(
    oasr, engines, manifest, tmp_path, name, row, reason
):
    listed, out = manifest(2, json.dumps(row)), tmp_path / "all"
    folders = [tmp_path / "s0", tmp_path / "s1"]
    for index, folder in enumerate(folders):
        assert oasr("transcribe", listed, "-o", folder, "--shard", f"{index}/2").code == 0
    done = oasr("merge", *folders, "-o", out, "-f", name)
    assert done.code == 2 and not out.exists()
    assert f"--format: output format {name!r} cannot write the row" in done.err and reason in done.err
    assert oasr("merge", *folders, "-o", out).code == 0


def test_shards_in_which_two_recordings_have_one_name_are_refused_before_anything_is_written(
    oasr, engines, manifest, wav, tmp_path
):
    listed, folders = manifest(0, *(json.dumps({"audio": f"{name}/x.wav"}) for name in "ab")), []
    for index, name in enumerate("ab"):
        wav(f"{name}/x.wav")
        folders.append(tmp_path / f"s{index}")
        shard = ("--shard", f"{index}/2", "--word-timestamps")
        assert oasr("transcribe", listed, "-o", folders[-1], *shard).code == 0
    done = oasr("merge", *folders, "-o", tmp_path / "all", "-f", "ctm")
    assert done.code == 2 and "called 'x 1' too" in done.err and not (tmp_path / "all").exists()


def test_gaps_and_duplicates_are_refused(oasr, shards, tmp_path):
    _, (first, second, third) = shards(3)
    for given, named in (
        ((first, third), "not given: 1/3"),
        ((first, first, second, third), "both hold shard 0/3"),
        ((first, tmp_path, third), "no run.json"),
    ):
        done = oasr("merge", *given, "-o", tmp_path / "all")
        assert done.code == 1 and named in done.err and not (tmp_path / "all").exists()


def test_shards_of_different_runs_are_refused(oasr, engines, shards, tmp_path):
    listed, (first, _) = shards(2)
    other = tmp_path / "other"
    assert oasr("transcribe", listed, "-o", other, "--shard", "1/2", "--language", "de").code in (0, 3)
    done = oasr("merge", first, other, "-o", tmp_path / "all")
    assert done.code == 1 and '--language: null then, "de" now' in done.err
    listed.write_text(listed.read_text() + LAST.replace("gone", "more") + "\n")
    assert oasr("transcribe", listed, "-o", other, "--shard", "1/2", "--overwrite").code in (0, 3)
    done = oasr("merge", first, other, "-o", tmp_path / "all")
    assert done.code == 1 and "the list (sha256)" in done.err
    assert oasr("transcribe", listed, "-o", other, "--overwrite").code == 3
    assert "not a shard" in oasr("merge", first, other, "-o", tmp_path / "all").err


@pytest.mark.parametrize("change", ["unfinished", "short", "long", "twice"])
def test_shards_that_do_not_hold_their_rows_are_refused(oasr, shards, tmp_path, change):
    _, (first, second) = shards(2)
    results, record = second / "results.jsonl", second / "run.json"
    lines = results.read_bytes().splitlines(keepends=True)
    if change == "unfinished":
        record.write_text(record.read_text().replace('"finished"', '"running"'))
    elif change == "short":
        results.write_bytes(b"".join(lines[:-1]))
    elif change == "long":
        results.write_bytes(b"".join([*lines, lines[0].replace(b"rab", b"zzz")]))
    else:
        results.write_bytes(b"".join([lines[0].replace(b"rab", b"raa"), *lines[1:]]))
    done = oasr("merge", first, second, "-o", tmp_path / "all")
    expected = {"unfinished": "not finished", "short": "fewer", "long": "'zzz'", "twice": "both have the id"}
    assert done.code == 1 and expected[change] in done.err and str(second) in done.err
    assert not (tmp_path / "all").exists()


def test_an_output_that_is_in_use_is_refused(oasr, shards):
    _, (first, second) = shards(2)
    assert oasr("merge", first, second, "-o", first).code == 2
    assert oasr("merge", first, second, "-o", second, "--overwrite").code == 2


@pytest.mark.parametrize("text", ["1", "2/2", "a/b", "-1/2", "1/0", "1/2/3", ""])
def test_a_shard_that_cannot_be_is_usage(oasr, manifest, text):
    done = oasr("transcribe", manifest(1), f"--shard={text}")
    assert done.code == 2 and "--shard: expected I/N" in done.err
