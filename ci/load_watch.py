"""Runs `oasr transcribe` and samples it: memory, handles, threads, CPU time, and the rows it has written.

A CPU second is not always as much work: who shares the caches and the other half of a core can cost a third
of it, and come and go within seconds. So beside every sample a fixed computation is timed (`burst`), and CPU
time is also counted by what it was worth then.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

# A burst on both cores would take them from the command; read when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

EVERY_S = 0.2
BURST_S = 0.002
"""What a burst takes on a machine of the speed 1, about; only ratios of speeds count."""
_MATRIX = np.random.default_rng(0).random((160, 160), dtype=np.float32)


@dataclass(frozen=True)
class Sample:
    """What the command was at one moment: seconds, its CPU seconds, MB, open files, threads, rows written.

    `work_s` is CPU seconds, each times the machine's speed then.
    """

    at_s: float
    cpu_s: float
    rss_mb: float
    handles: int
    threads: int
    rows: int
    work_s: float = 0.0


@dataclass
class Watched:
    """One run: its samples, when the model stood, when windows of long recordings and the marked row came.

    Times are seconds from the start of the process; `marked` has the number of rows before it, too.
    """

    samples: list[Sample] = field(default_factory=list)
    ready_s: float = 0.0
    parts_at: list[float] = field(default_factory=list)
    marked: tuple[float, int] | None = None
    code: int = 0

    def when(self, rows: int) -> tuple[float, float, float]:
        """Seconds, CPU seconds and work at which so many rows were written, between samples in proportion."""
        for one, two in pairwise(self.samples):
            if two.rows >= rows > one.rows:
                share = (rows - one.rows) / (two.rows - one.rows)
                return (
                    one.at_s + share * (two.at_s - one.at_s),
                    one.cpu_s + share * (two.cpu_s - one.cpu_s),
                    one.work_s + share * (two.work_s - one.work_s),
                )
        raise SystemExit(f"no sample has {rows} rows: the run ended early, or within {EVERY_S} s")

    def between(self, first: int, last: int) -> list[Sample]:
        """The samples of a part of the list; what comes behind the last row belongs to none."""
        until_s = self.when(last)[0]
        return [s for s in self.samples if first < s.rows <= last and s.at_s <= until_s + EVERY_S]


class Follower:
    """A file that grows by lines; it may not be there yet, and is followed when another takes its name."""

    def __init__(self, path: Path) -> None:
        self._path, self._file, self._rest = path, None, b""

    def lines(self) -> list[bytes]:
        """The lines that have been added."""
        if self._file is None:
            if not self._path.exists():
                return []
            self._file = self._path.open("rb")
        *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
        return whole


def watch(command: list[str], folder: Path, out: Path | None, mark: bytes = b"\n") -> Watched:
    """Run `command` to its end and sample it.

    Args:
        command: an `oasr transcribe` without -o.
        folder: for its standard output and messages, which are printed at the end.
        out: the folder that -o shall name; None = the results are its standard output.
        mark: what the line of one row holds, and no other.
    """
    stdout, stderr = folder / "stdout", folder / "stderr"
    with stdout.open("wb") as results, stderr.open("wb") as notes:
        to = [] if out is None else ["-o", str(out)]
        child = subprocess.Popen([*command, *to], stdout=results, stderr=notes)
    rows = Follower(stdout if out is None else out / "results.jsonl")
    parts = Follower((out or folder) / "partial.jsonl")
    found, count, start, running = Watched(), 0, time.perf_counter(), True
    while running:
        running = child.poll() is None  # asked first: what is written until then is read once more below
        now = time.perf_counter() - start
        if not found.ready_s and stderr.stat().st_size:
            found.ready_s = now  # the line that names the model
        for line in rows.lines():
            if mark in line:
                found.marked = (now, count)
            count += 1
        found.parts_at += [now for _ in parts.lines()]
        if (sample := read_sample(child.pid, now, count)) is not None:
            before = found.samples[-1] if found.samples else replace(sample, cpu_s=0.0)
            work_s = before.work_s + (sample.cpu_s - before.cpu_s) * BURST_S / burst()
            found.samples.append(replace(sample, work_s=work_s))
        elif found.samples:
            found.samples.append(replace(found.samples[-1], at_s=now, rows=count))
        time.sleep(max(0.0, EVERY_S - (time.perf_counter() - start - now)))
    found.code = child.returncode
    print(stderr.read_text("utf-8"), end="")
    return found


def burst() -> float:
    """CPU seconds of a fixed computation, part arithmetic, part memory, part Python."""
    start = time.thread_time()
    _ = _MATRIX @ _MATRIX @ _MATRIX
    hashlib.blake2b(bytes(1 << 18)).digest()
    sorted(range(8000), key=lambda value: -value)
    return max(time.thread_time() - start, 1e-9)


def read_sample(pid: int, now: float, rows: int) -> Sample | None:
    """From /proc; None once the process is over."""
    folder = Path("/proc") / str(pid)
    try:
        pages = int((folder / "statm").read_text().split()[1])
        # Behind the name of the command, which may hold blanks.
        stat = (folder / "stat").read_text().rpartition(")")[2].split()
        handles = sum(1 for _ in (folder / "fd").iterdir())
    except (OSError, IndexError):
        return None
    if not pages:
        return None  # it has ended and waits to be collected
    cpu_s = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    return Sample(now, cpu_s, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, handles, int(stat[17]), rows)
