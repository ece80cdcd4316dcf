"""`--launcher ray` on a cluster of processes: the rows, files and codes of a local run, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

cluster_utils = pytest.importorskip("ray.cluster_utils")
MODEL = Path(__file__).parents[1] / "checkpoints" / "digits-conformer"
ROWS = 32
FLAGS = ("--model", str(MODEL), "--device", "cpu", "--wer", "--batch-size", "4", "--threads", "1")
FORMATS = ("-f", "txt,srt,ctm")
pytestmark = pytest.mark.timeout(900)  # Ray starts a dozen processes


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of two processors that runs apart from this process."""
    head = {"num_cpus": 2, "num_gpus": 0, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    for attempt in range(4):
        try:
            started = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
            break
        except Exception:  # Ray gives up where its agents take 15 s to start, as on a machine that is busy
            if attempt == 3:
                raise
    yield started.address
    left, deadline = _engines(), time.monotonic() + 60
    started.shutdown()
    # They end by themselves when their cluster is gone.
    while any(Path(f"/proc/{engine}").exists() for engine in left):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, repo_root: Path) -> Path:
    """A Kaldi folder of spoken digits. One row has no recording; those of the second half wait for a gate."""
    folder = tmp_path_factory.mktemp("data")
    known = [json.loads(line) for line in (repo_root / "manifests/digits.jsonl").read_text().splitlines()]
    (folder / "a").symlink_to(repo_root / "manifests" / "digits")
    wait = "for i in $(seq 2400); do [ -e gate ] && break; sleep 0.1; done"
    with (folder / "wav.scp").open("w") as recordings, (folder / "text").open("w") as texts:
        for number in range(ROWS):
            audio = f"a/{number:03}.flac" if number != 3 else "gone.flac"
            recordings.write(f"row-{number:02} {audio if number < ROWS // 2 else f'{wait}; cat {audio} |'}\n")
            texts.write(f"row-{number:02} {known[number]['text']}\n")
    return folder


@pytest.fixture(autouse=True)
def gate(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that lets the second half of the list through, which is open.

    Paths are relative: they begin where the command is run, not where the cluster was started.
    """
    monkeypatch.chdir(data)
    (data / "gate").touch()
    return data / "gate"


@pytest.fixture
def local(oasr: Callable[..., Any]) -> Callable[..., Any]:
    """`oasr transcribe` of the list with one engine, here."""
    return lambda *flags: oasr("transcribe", ".", "--allow-pipes", *FLAGS, *flags)


@pytest.fixture
def started() -> list[subprocess.Popen[str]]:
    """The commands that were started on the cluster."""
    return []


@pytest.fixture
def on_ray(cluster: str, started: list[subprocess.Popen[str]]) -> Callable[..., Done]:
    """The same on two engines, in a process of its own: Ray's threads and handlers are not for the tests'."""
    where = ("--launcher", "ray", "--actors", "2", "--ray-address", cluster)

    def run(*flags: object) -> Done:
        command = [sys.executable, "-m", "oasr_cli", "transcribe", ".", "--allow-pipes", *FLAGS, *where]
        command += map(str, flags)
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        out, err = started[-1].communicate(timeout=500)
        assert "Traceback" not in out + err
        return Done(started[-1].returncode, out, err)

    return run


def _files(folder: Path) -> dict[str, bytes]:
    """What a run wrote, without what says when and how."""
    skipped = ("run.json", ".oasr-files.jsonl")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in skipped}


def _engines() -> list[int]:
    """Processes of the actors that hold engines, of clusters that this process began."""
    parents: dict[int, int] = {}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if command.startswith(b"ray::MapWorker(MapBatches(EngineActor"):
            found.append(int(process.name))
    return [engine for engine in found if os.getpid() in _ancestors(engine, parents)]


def _ancestors(process: int, parents: dict[int, int]) -> Iterator[int]:
    while (process := parents.get(process, 0)) > 0:
        yield process


def _once_rows_come(folder: Path, do: Callable[[], object]) -> list[int]:
    """Start a thread that calls `do` when some rows are written; the list gets how many those were."""
    seen: list[int] = []

    def watch() -> None:
        results, deadline = folder / "results.jsonl", time.monotonic() + 240
        while time.monotonic() < deadline:
            lines = results.read_bytes().count(b"\n") if results.exists() else 0
            if lines > 3:
                seen.append(lines)
                do()
                return
            time.sleep(0.01)

    threading.Thread(target=watch, daemon=True).start()
    return seen


def test_killed_engines_cost_no_row_and_double_none(local, on_ray, gate, tmp_path):
    here, out = tmp_path / "here", tmp_path / "out"
    assert local(*FORMATS, "-o", here).code == 3
    gate.unlink()

    def kill() -> None:
        engines = _engines()
        assert engines
        for engine in engines:
            os.kill(engine, signal.SIGKILL)
        gate.touch()

    seen = _once_rows_come(out, kill)
    done = on_ray(*FORMATS, "-o", out, "--progress")
    assert done.code == 3 and done.out == "" and seen and seen[0] < ROWS and gate.exists(), (done, seen)
    assert _files(out) == _files(here)
    assert f"rows: {ROWS - 1} ok, 1 failed" in done.err and "2 × cpu" in done.err and "WER 0." in done.err
    assert not [line for line in done.err.splitlines() if "ray" in line.lower()], done.err
    ours, theirs = (json.loads((folder / "run.json").read_text()) for folder in (out, here))
    for key in ("state", "list", "settings", "model", "counts", "results_per_row"):
        assert ours[key] == theirs[key], key


def test_rows_come_to_stdout_in_the_order_of_the_list(local, on_ray):
    done, expected = on_ray(), local()
    assert done.code == expected.code == 3 and done.out == expected.out


def test_an_interrupted_run_can_be_resumed_by_either(local, on_ray, started, gate, tmp_path, read_rows):
    out = tmp_path / "out"
    gate.unlink()
    _once_rows_come(out, lambda: started[-1].send_signal(signal.SIGINT))
    done = on_ray("-o", out)
    assert done.code == 130 and "stopped by SIGINT" in done.err and "rows are left; --resume" in done.err
    assert 3 < len(read_rows(out)) < ROWS
    gate.touch()
    assert local("-o", out, "--resume").code == 3
    assert local("-o", tmp_path / "here").code == 3
    assert _files(out) == _files(tmp_path / "here")


def test_an_engine_that_cannot_load_says_what_a_local_one_says(local, on_ray):
    flags = ("--decode-method", "transducer")
    done, expected = on_ray(*flags), local(*flags)
    assert (done.code, done.err, done.out) == (expected.code, expected.err, expected.out) and done.code == 2


def test_engines_that_die_while_they_load_end_the_run(on_ray, started):
    def kill_who_loads() -> None:
        while not started or started[-1].poll() is None:
            for engine in _engines():
                # One that has torch in its memory has begun to load, and needs a second yet.
                with suppress(OSError):
                    if b"libtorch" in Path(f"/proc/{engine}/maps").read_bytes():
                        os.kill(engine, signal.SIGKILL)
            time.sleep(0.02)

    threading.Thread(target=kill_who_loads, daemon=True).start()
    done = on_ray()
    assert done.code == 1 and "4 engine processes ended while they were loading the model" in done.err, done


def test_more_than_the_cluster_has_is_refused(on_ray):
    done = on_ray("--actors", "3")
    assert done.code == 2 and "--actors: 3 were asked for" in done.err and "2 CPUs" in done.err
