"""The list as a whole: numbering, shards, counts, digests, stdin."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from oasr.errors import ManifestError, OptionsError
from oasr.manifest import InputOptions, open_inputs

A, B, C = ({"id": name, "audio": f"{name}.wav"} for name in "abc")


@pytest.fixture
def stdin(monkeypatch):
    def feed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return feed


@pytest.fixture
def mixed(write, tmp_path) -> list[str]:
    """Three inputs with 3 + 2 + 1 rows, one of them broken."""
    write("folder/x.wav")
    write("folder/y.wav")
    return [
        str(write("list.jsonl", A, "{broken", "", B)),
        str(tmp_path / "folder"),
        str(write("kaldi/wav.scp", "k k.wav").parent),
    ]


def test_one_numbering_over_all_inputs(mixed, tmp_path):
    inputs = open_inputs(mixed)
    assert [row.index for row in inputs] == list(range(6))
    names = ["a", "list.jsonl:2", "b", f"{tmp_path}/folder/x.wav", f"{tmp_path}/folder/y.wav", "k"]
    assert [row.id for row in inputs] == names
    assert [row.id for row in inputs] == names, "the list can be read again"
    assert inputs.count() == 6
    inputs.check_ids()


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_shards_partition_the_list(mixed, n):
    whole = list(open_inputs(mixed))
    shards = [open_inputs(mixed, InputOptions(shard=(i, n))) for i in range(n)]
    for i, shard in enumerate(shards):
        rows = list(shard)
        assert rows == whole[i::n]
        assert shard.count() == len(rows)
        shard.check_ids()
        assert shard.count() == len(rows)
        assert shard.sha256() == shards[0].sha256()


@pytest.mark.parametrize("shard", [(1, 1), (-1, 2), (0, 0), (3, 2)])
def test_shards_that_do_not_exist(shard):
    with pytest.raises(OptionsError, match="shard"):
        InputOptions(shard=shard)


def test_duplicates_are_refused_across_shards(write):
    path = write("list.jsonl", A, B, A)
    with pytest.raises(ManifestError):
        open_inputs([str(path)], InputOptions(shard=(1, 2))).check_ids()


def test_the_rows_of_all_shards_can_be_looked_at_from_one(write):
    path = str(write("list.jsonl", A, B, C))
    shard = open_inputs([path], InputOptions(shard=(1, 2)))
    assert list(shard.all_shards()) == list(open_inputs([path]))
    assert [row.id for row in shard] == ["b"]


def test_sources_are_what_an_output_must_not_overwrite(mixed):
    sources = open_inputs(mixed).sources
    assert set(sources) == {*mixed, f"{mixed[2]}/wav.scp"}


def test_sha256(mixed, write):
    first = mixed[0]
    assert open_inputs([first]).sha256() == hashlib.sha256(Path(first).read_bytes()).hexdigest()
    before = open_inputs(mixed).sha256()
    assert before == open_inputs(mixed).sha256() != open_inputs(mixed[::-1]).sha256()
    write("kaldi/text", "k hello")
    with_text = open_inputs(mixed).sha256()
    write("folder/z.wav")
    assert len({before, with_text, open_inputs(mixed).sha256()}) == 3


@pytest.mark.parametrize("content", [b"", b"\n\n  \r\n", b"\xef\xbb\xbf"])
def test_a_list_without_rows_is_refused(write, content):
    path = write("list.jsonl", content, end=b"")
    inputs = open_inputs([str(path)])
    assert list(inputs) == []
    assert inputs.count() == 0
    with pytest.raises(ManifestError, match=r"no rows in .*list\.jsonl"):
        inputs.check_ids()


def test_an_empty_manifest_beside_a_full_one_is_no_error(write):
    inputs = open_inputs([str(write("empty.jsonl")), str(write("list.jsonl", A))])
    inputs.check_ids()
    assert [(row.id, row.index) for row in inputs] == [("a", 0)]


def test_stdin(stdin, tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    data = b"".join(json.dumps(row).encode() + b"\n" for row in (A, B)) + b"{broken"
    stdin(data)
    inputs = open_inputs(["-"])
    inputs.check_ids()
    for _ in range(2):
        first, second, third = inputs
        assert (first.audio, first.origin, second.id) == ("a.wav", "<stdin>:1", "b")
        assert (third.id, third.origin) == ("stdin:3", "<stdin>:3")
    assert inputs.sha256() == hashlib.sha256(data).hexdigest()
    assert inputs.count() == 3
    assert inputs.sources == (), "nothing that an output could overwrite"


def test_stdin_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ManifestError, match="stdin is closed"):
        open_inputs(["-"])


def test_two_passes_over_stdin_do_not_disturb_each_other(stdin):
    stdin(b"".join(json.dumps({"id": i, "audio": "a.wav"}).encode() + b"\n" for i in range(20_000)))
    inputs = open_inputs(["-"])
    assert all(one.id == other.id for one, other in zip(inputs, inputs, strict=True))


def test_stdin_with_a_root_and_a_byte_order_mark(stdin, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("root/a.wav")
    stdin(b"\xef\xbb\xbf" + json.dumps(A).encode())
    (row,) = open_inputs(["-"], InputOptions(audio_root=str(tmp_path / "root")))
    assert row.audio == f"{tmp_path}/root/a.wav"


def test_stdin_is_searched_for_duplicates_and_given_once(stdin):
    stdin(json.dumps(A).encode() + b"\n" + json.dumps(A).encode())
    with pytest.raises(ManifestError, match=r"<stdin>:1 and <stdin>:2"):
        open_inputs(["-"]).check_ids()
    with pytest.raises(ManifestError, match="once only"):
        open_inputs(["-", "-"])


def test_stdin_on_a_full_disk(stdin, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("oasr.manifest.lines.tempfile.TemporaryFile", lambda **_: Full())
    stdin(b"{}")
    with pytest.raises(ManifestError, match=r"No space left on device.*TMPDIR"):
        open_inputs(["-"])


def test_a_pipe_named_as_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = b"".join(json.dumps(row).encode() + b"\n" for row in (A, B))
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    inputs = open_inputs([str(pipe)])
    writer.join()
    inputs.check_ids()
    assert [row.audio for row in inputs] == ["a.wav", "b.wav"], "relative to the current folder"


def test_broken_rows_of_manifests_with_one_name_do_not_clash(write):
    inputs = open_inputs([str(write("one/list.jsonl", "{")), str(write("two/list.jsonl", "{"))])
    inputs.check_ids()
    assert [row.id for row in inputs] == [f"{path}:1" for path in inputs.sources]


def test_an_unreadable_manifest(write, monkeypatch):
    path = write("list.jsonl", A)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("oasr.manifest.lines.io.FileIO", refuse)
    with pytest.raises(ManifestError, match=r"list\.jsonl: cannot be read: Permission denied"):
        open_inputs([str(path)])


def test_a_manifest_that_vanishes(write):
    path = write("list.jsonl", A)
    inputs = open_inputs([str(path)])
    path.unlink()
    for use in (list, lambda x: x.check_ids(), lambda x: x.count(), lambda x: x.sha256()):
        with pytest.raises(ManifestError, match="cannot be read"):
            use(inputs)


def test_memory_does_not_grow_with_the_list(write, monkeypatch):
    monkeypatch.setattr("oasr.manifest.lines.BLOCK_LINES", 256)
    monkeypatch.setattr("oasr.manifest.lines._READ_BYTES", 1 << 14)

    def peak(n: int) -> int:
        path = write(
            "list.jsonl",
            *(f'{{"id": "{i:09d}", "audio": "w/{i}.wav", "text": "{"x" * 80}"}}' for i in range(n)),
        )
        inputs = open_inputs([str(path)])
        tracemalloc.start()
        inputs.check_ids()
        for _ in inputs:
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1_000)
    assert peak(9_000) - peak(3_000) < 6_000 * 40, "eight bytes a row, and sorting them"


def test_line_numbers_hold_beyond_the_first_block(write, monkeypatch):
    monkeypatch.setattr("oasr.manifest.lines.BLOCK_LINES", 2)
    jsonl = write("list.jsonl", A, B, "", C, "{broken", "{broken")
    scp = write("k/wav.scp", "d d.wav", "", "", "e e.wav", b"\xff f.wav")
    write("k/text", "", "e E", "", "d D", "", "")
    inputs = open_inputs([str(jsonl), str(scp.parent)])
    inputs.check_ids()
    names = ["a", "b", "c", "list.jsonl:5", "list.jsonl:6", "d", "e", "wav.scp:5"]
    assert [row.id for row in inputs] == names
    assert [name for reader in inputs._readers for block in reader.ids() for name in block] == names
    assert [row.text for row in list(inputs)[5:7]] == ["D", "E"]
