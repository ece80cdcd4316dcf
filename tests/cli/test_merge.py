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
