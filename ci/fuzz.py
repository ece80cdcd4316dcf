"""Feed malformed files to a reader, which must refuse them in words: no crash, no hang, no huge allocation.

    python ci/fuzz.py TARGET --seconds 600        one of the targets of ci/fuzzing/targets.py, or "all"
    python ci/fuzz.py TARGET --first 123 --count 1  one input again

Inputs are made from the valid files of tests/fuzz/seeds and numbered; a number gives the same input every
time. They are read in a child process with limits (ci/fuzzing/worker.py). Exit 1 when there is a fault: the
first input of each kind goes into the folder --save, to be kept, made small, as
tests/fuzz/seeds/FOLDER/found/NAME~WHAT.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzing.targets import TARGETS, Target

SILENT_S = 90.0
"""An input may wait this long without computing; what computes is ended by the worker's own limit."""
_NUMBER = re.compile(r"mutant (\d+)")


@dataclass
class Tally:
    """What a target has been through: inputs, time, its faults by kind → (how often, the first)."""

    inputs: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    faults: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, name: str, fault: str) -> bool:
        """Count a fault; True when it is the first of its kind."""
        kind = re.sub(r"\d+", "N", fault.split(": ")[0])
        count, first = self.faults.get(kind, (0, f"{name}: {fault}"))
        self.faults[kind] = count + 1, first
        return count == 0


def main() -> int:
    """Fuzz the targets given; 1 when one of them has a fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--seconds", type=float, default=600.0, help="for each target")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, default=10**9, help="inputs at most")
    parser.add_argument(
        "--save", type=Path, default=Path("fuzz-faults"), help="folder for inputs with a fault"
    )
    given = parser.parse_args()
    names = list(TARGETS) if given.target == "all" else [given.target]
    bad = 0
    for name in names:
        tally = fuzz(TARGETS[name], given)
        bad += bool(tally.faults)
        spent = f"{tally.seconds:.0f} s ({tally.cpu_s:.0f} s of CPU)"
        print(f"{name}: {tally.inputs} inputs in {spent}, {len(tally.faults)} kinds of fault", flush=True)
        for count, first in tally.faults.values():
            print(f"  {count} times, first {first}")
    return 1 if bad else 0


def fuzz(target: Target, given: argparse.Namespace) -> Tally:
    """Start workers until the time or the inputs are used up."""
    tally, start, number, cpu_s = Tally(), time.monotonic(), given.first, _cpu_of_children()
    last = given.first + given.count
    while number < last and time.monotonic() - start < given.seconds:
        with tempfile.TemporaryDirectory(prefix="oasr-fuzz-") as folder:
            number = _worker(target, Path(folder), (number, last), (tally, given.save, start + given.seconds))
    tally.seconds = time.monotonic() - start
    tally.cpu_s = _cpu_of_children() - cpu_s
    return tally


def _worker(target: Target, folder: Path, numbers: tuple[int, int], to: tuple[Tally, Path, float]) -> int:
    """Run one worker from the first number on; returns the number that is next."""
    tally, save, until = to
    first, last = numbers
    command = [sys.executable, "-m", "fuzzing.worker", target.name, str(folder / "work")]
    command += ["--first", str(first), "--count", str(last - first)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    at, words = first - 1, folder / "stderr"
    with words.open("wb") as stderr, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, env=environment
    ) as worker:  # fmt: skip
        lines = _Lines(worker.stdout.fileno())
        while said := lines.next(SILENT_S * (1 if tally.inputs else 10)):
            at = int(_NUMBER.fullmatch(said["begins"])[1])
            tally.inputs += "fault" not in said
            if "fault" in said:
                _note(target, at, said["fault"], tally, save)
            # Behind the note: a fault that comes late is a fault.
            if time.monotonic() >= until:
                break
        ended = worker.poll() is not None or lines.closed
        if not ended:
            worker.kill()
        code = worker.wait()
    if said is None and (code or not ended):
        if at < first:
            raise SystemExit(words.read_text("utf-8", "replace")[-3000:])
        _note(target, at, _death(code, ended, words), tally, save)
    return at + 1


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _death(code: int, ended: bool, words: Path) -> str:
    """How the worker died; the innermost frames stand first in what faulthandler wrote."""
    kind = "Silence" if not ended else signal.Signals(-code).name if code < 0 else f"Exit{code}"
    kind = "Hang" if code == -signal.SIGPROF else kind
    trace = words.read_text("utf-8", "replace")
    frames = re.findall(r'File "[^"]*?/([\w.-]+/[\w.-]+)", line (\d+) in (\w+)', trace)
    place = f"{frames[0][0]}:{frames[0][1]} {frames[0][2]}" if frames else "?"
    return f"{kind} at {place}: {trace[-300:]!a}"


def _note(target: Target, number: int, fault: str, tally: Tally, save: Path) -> None:
    seed, data = target.mutant(number)
    if tally.add(f"mutant {number} of {seed.parent.name}/{seed.name}", fault):
        save.mkdir(parents=True, exist_ok=True)
        (save / f"{target.name}-{number}-{seed.name}").write_bytes(data)


class _Lines:
    """JSON lines of a pipe, with a limit for how long it may be silent."""

    def __init__(self, fd: int) -> None:
        self._fd, self._held, self.closed = fd, b"", False

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next one; None at the end, and when none comes in time."""
        while b"\n" not in self._held:
            if not select.select([self._fd], [], [], timeout_s)[0]:
                return None
            data = os.read(self._fd, 1 << 16)
            if not data:
                self.closed = True
                return None
            self._held += data
        line, self._held = self._held.split(b"\n", 1)
        value: dict[str, Any] = json.loads(line)
        return value


if __name__ == "__main__":
    sys.exit(main())
