"""Disks that fill up, folders that vanish or cannot be written: an OutputError, and nothing lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from oasr.errors import OutputError
from oasr.output import append_file
from oasr.output.rows import result_row
from oasr.output.run_folder import RunFolder
from oasr.types import RequestOutput


def item(index: int, size: int = 20):
    output = RequestOutput(f"u{index}", text="x" * size, segments=((0.0, 1.0, "x" * size),))
    return (
        (index, 0),
        output.request_id,
        result_row({"id": output.request_id}, output.request_id, output),
        output,
    )


class FullDisk:
    """os, with a write that takes `room` bytes in all and then fails as a full disk does."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __getattr__(self, name):
        return getattr(os, name)

    def write(self, fd, data):
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = os.write(fd, data[: self.room])
        self.room -= count
        return count


@pytest.mark.parametrize("room", [0, 1, 100, 250, 255])
def test_a_full_disk_leaves_whole_rows_and_says_how_to_go_on(tmp_path, monkeypatch, room):
    lines = [len(_line(index)) for index in range(10)]
    fitting = sum(sum(lines[: n + 1]) <= room for n in range(10))
    with RunFolder.open(tmp_path / "out") as folder:
        monkeypatch.setattr(append_file, "os", FullDisk(room))
        with pytest.raises(OutputError, match=rf"No space left.*\({fitting} rows are saved; --resume"):
            for index in range(10):
                folder.append(*item(index))
        monkeypatch.undo()
        log = (tmp_path / "out" / "results.jsonl").read_bytes()
        assert log == b"".join(_line(index) for index in range(fitting))
        folder.append(*item(fitting))  # room again: the same run may go on
    with RunFolder.open(tmp_path / "out", resume=True) as folder:
        assert set(folder.done_ids) == {f"u{index}" for index in range(fitting + 1)}


def _line(index: int) -> bytes:
    from oasr.output.jsonl import encode_line

    return encode_line(item(index)[2])


def test_a_full_disk_at_the_end_keeps_every_row(tmp_path, monkeypatch):
    from oasr.output import results_file

    class NoSync(FullDisk):
        def fsync(self, fd):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RunFolder.open(tmp_path / "out") as folder:
        for index in (2, 1, 0):
            folder.append(*item(index))
        monkeypatch.setattr(results_file, "os", NoSync(0))
        with pytest.raises(OutputError, match=r"3 rows are saved.* not yet in manifest order"):
            folder.finish()
        assert [p.name for p in (tmp_path / "out").iterdir()] == ["results.jsonl"]
        monkeypatch.undo()
        folder.finish()
        assert [row["id"] for row in folder.rows()] == ["u0", "u1", "u2"]


@pytest.mark.parametrize("formats", [[], ["txt"]])
def test_a_real_full_disk_and_a_resume_after_room_was_made(small_disk, formats):
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"0" * 30_000)
    out = small_disk / "out"
    with RunFolder.open(out, formats=formats) as folder, pytest.raises(OutputError, match="No space left"):
        for index in range(1000):
            folder.append(*item(index, 500))
    ballast.unlink()
    with RunFolder.open(out, resume=True, formats=formats) as folder:
        done = len(folder.done_ids)
        assert 2 < done < 100
        for index in range(done + 1):
            position, utterance_id, row, output = item(index, 500)
            if utterance_id in folder.done_ids:
                folder.note_done(position, utterance_id)
            else:
                folder.append(position, utterance_id, row, output)
        folder.finish()
        assert [row["id"] for row in folder.rows()] == [f"u{index}" for index in range(done + 1)]


def test_a_read_only_disk_is_refused_before_any_work(small_disk):
    (small_disk / "there").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for name in ("there", "new/deep"):
        with pytest.raises(OutputError, match="Read-only file system: cannot be used for output"):
            RunFolder.open(small_disk / name)


@pytest.fixture
def open_tmp():
    """A temporary folder that other users may enter, as pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_folder_without_write_permission_is_refused_before_any_work(open_tmp):
    locked = open_tmp / "locked"
    locked.mkdir(mode=0o555)
    code = (
        "import os, sys\n"
        "from oasr.errors import OutputError\n"
        "from oasr.output.run_folder import RunFolder\n"
        "if os.geteuid() == 0:\n"
        "    os.setegid(65534), os.seteuid(65534)\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        RunFolder.open(path)\n"
        "    except OutputError as error:\n"
        "        print(error)\n"
    )
    script = [sys.executable, "-c", code, str(locked), str(locked / "new")]
    shown = subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(shown) == 2
    assert all("Permission denied" in line and "cannot be used for output" in line for line in shown)


def test_a_parent_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be used for output"):
        RunFolder.open(tmp_path / "file" / "out")


def test_a_results_name_that_is_a_folder_is_refused(tmp_path):
    (tmp_path / "results.jsonl").mkdir()
    with pytest.raises(OutputError, match="cannot be used for output"):
        RunFolder.open(tmp_path, resume=True)


@pytest.mark.parametrize("formats", [[], ["json"]])
def test_a_folder_deleted_under_the_run_is_noticed_at_the_next_row(tmp_path, formats):
    with RunFolder.open(tmp_path / "out", formats=formats) as folder:
        folder.append(*item(0))
        shutil.rmtree(tmp_path / "out")
        with pytest.raises(OutputError, match=r"removed or replaced .* and 1 rows with it"):
            folder.append(*item(1))
        with pytest.raises(OutputError, match="removed or replaced"):
            folder.finish()


def test_a_folder_replaced_under_the_run_is_left_alone(tmp_path):
    with RunFolder.open(tmp_path / "out") as folder:
        folder.append(*item(0))
        (tmp_path / "out").rename(tmp_path / "moved")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "results.jsonl").write_text("mine\n")
        with pytest.raises(OutputError, match="removed or replaced"):
            folder.append(*item(1))
        with pytest.raises(OutputError, match="removed or replaced"):
            folder.finish()
    assert (tmp_path / "out" / "results.jsonl").read_text() == "mine\n"


def test_a_row_that_somebody_added_meanwhile_is_not_thrown_away(tmp_path):
    with RunFolder.open(tmp_path / "out") as folder:
        folder.append(*item(1))
        folder.append(*item(0))
        with (tmp_path / "out" / "results.jsonl").open("ab") as log:
            log.write(_line(7))
        before = (tmp_path / "out" / "results.jsonl").read_bytes()
        with pytest.raises(OutputError, match="holds rows that this run does not know"):
            folder.finish()
        assert (tmp_path / "out" / "results.jsonl").read_bytes() == before
        assert [p.name for p in (tmp_path / "out").iterdir()] == ["results.jsonl"]


def test_a_list_format_that_cannot_be_written_can_be_tried_again(tmp_path, monkeypatch):
    from oasr.output.writers import WRITERS

    class ListWriter:
        scope, suffix = "run", "list.txt"

        def render(self, row, output):
            return f"{row['id']}\n"

    monkeypatch.setitem(WRITERS._loaded, "list", ListWriter)
    with RunFolder.open(tmp_path / "out", formats=["list"]) as folder:
        for index in (1, 0):
            folder.append(*item(index))
        (tmp_path / "out" / "list.txt").mkdir()
        with pytest.raises(OutputError, match="2 rows are saved"):
            folder.finish()
        (tmp_path / "out" / "list.txt").rmdir()
        folder.finish()
    assert (tmp_path / "out" / "list.txt").read_text() == "u0\nu1\n"
