"""The process that reads the inputs, under limits: what goes wrong in it kills nobody else.

    python -m fuzzing.worker TARGET FOLDER --first N --count N

On stdout: for each input a line when it begins and, where there is a fault, a line that says which. An input
that ends the process (a crash, five seconds of CPU or thirty with --quick, memory that native code could not
get) is the last one begun.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzzing.targets import TARGETS, Target, Workplace, check_message, kept_inputs

CPU_S = 5.0
MEMORY = 512 << 20
"""Bytes of address space by which one small file may make the process grow."""
_ALLOCATION = re.compile(r"alloc|out of memory|bad_alloc", re.IGNORECASE)


def main(arguments: list[str] | None = None) -> int:
    """Read the inputs one by one; 0 at their end, whatever came of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10**9, help="new inputs of each target, at most")
    parser.add_argument(
        "--quick", action="store_true", help="the valid files, what is kept, and a few new ones"
    )
    given = parser.parse_args(arguments)
    targets = list(TARGETS.values()) if given.target == "all" else [TARGETS[given.target]]
    place = Workplace(given.folder)
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries that print must not be taken for the report
    _warm_up(targets, place)
    grown = _Growth()
    for target, name, seed, data in _work(targets, given):
        print(json.dumps({"begins": name}), file=report)
        path = place.put(seed, data)
        # Whoever looks at known files only, asks whether they are read at all, on a slow machine too.
        signal.setitimer(signal.ITIMER_PROF, CPU_S * (6 if given.quick else 1))
        fault = fault_of(target, path)
        signal.setitimer(signal.ITIMER_PROF, 0)
        place.restore(seed)
        fault = fault or grown.fault()
        if fault:
            print(json.dumps({"begins": name, "fault": fault}), file=report)
        if grown.much and not given.quick:
            return 0  # the limit counts from a fresh start
    return 0


def _work(targets: list[Target], given: Any) -> Iterator[tuple[Target, str, Path, bytes]]:
    """(target, name, valid file, input) of every input, in an order that is always the same."""
    for target in targets:
        prefix = f"{target.name}: " if len(targets) > 1 else ""
        for name, seed, data in kept_inputs(target) if given.quick else ():
            yield target, prefix + name, seed, data
        count = target.quick if given.quick else given.count
        for number in range(given.first, given.first + count):
            yield target, f"{prefix}mutant {number}", *target.mutant(number)


def fault_of(target: Target, path: Path) -> str | None:
    """What is wrong with how `path` was read; None when it was read, or refused as it should be."""
    from oasr.errors import OasrError

    try:
        target.read(path)
    except OasrError as error:
        try:
            check_message(error)
        except AssertionError as wrong:
            return _described(wrong, error)
        return _starved(error)
    except BaseException as error:
        return _described(error, error)
    return None


def _starved(error: BaseException | None) -> str | None:
    """An allocation that failed and was then reported as a malformed file."""
    while error is not None:
        if isinstance(error, MemoryError) or _ALLOCATION.search(str(error)):
            return _described(error, error)
        error = error.__cause__ or error.__context__
    return None


def _described(kind: BaseException, where: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(where.__traceback__) if "fuzzing" not in f.filename]
    own = [f for f in frames if "oasr" in f.filename and "site-packages" not in f.filename] or frames[-1:]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].name}" if own else "?"
    return f"{type(kind).__name__} at {place}: {ascii(str(kind))[:300]}"


def _warm_up(targets: list[Target], place: Workplace) -> None:
    """Load all libraries that the valid files need, so that no input is blamed for it; set the limits."""
    for target, seed in ((one, seed) for one in targets for seed in one.seeds()):
        fault = fault_of(target, place.put(seed, seed.read_bytes()))
        if fault:
            raise SystemExit(f"{seed}: a valid file fails: {fault}")
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _status("VmSize") + 2 * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY, MEMORY))


class _Growth:
    """How far the address space has grown since the start."""

    def __init__(self) -> None:
        self._start = max(_status("VmPeak"), _status("VmSize"))
        self._last = self._start
        self.much = False

    def fault(self) -> str | None:
        """The input that has just been read took more than may be at once; None when it did not."""
        before, self._last = self._last, _status("VmPeak")
        self.much = self._last - self._start > MEMORY // 2
        if self._last - before > MEMORY // 2:
            return f"MemoryGrowth: {(self._last - before) >> 20} MiB of address space at once"
        return None


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", text)[1])


if __name__ == "__main__":
    sys.exit(main())
