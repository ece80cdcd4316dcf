"""Malformed files: those that once broke a reader, and new ones of every kind, are refused in words.

`ci/fuzz.py` looks for more of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing.targets import SEEDS, TARGETS

MOST_BYTES = 300 * 1024


def run_worker(arguments: list[str], folder: Path, repo_root: Path) -> tuple[int, list[dict[str, str]], str]:
    """Exit code, reports and stderr of the process that reads the files under limits."""
    environment = {**os.environ, "PYTHONPATH": str(repo_root / "ci"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "fuzzing.worker", *arguments, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=580)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_no_file_crashes_hangs_or_allocates_much(tmp_path: Path, repo_root: Path) -> None:
    code, reports, words = run_worker(["all", "--quick"], tmp_path / "work", repo_root)
    faults = [f"{report['begins']}: {report['fault']}" for report in reports if "fault" in report]
    assert not faults, "\n".join(faults)
    assert code == 0, f"{reports[-1] if reports else 'the start'} ended the process: {words[-2000:]}"
    kept = {f"{target.name}: {found.name}" for target in TARGETS.values() for found, _ in target.kept()}
    assert kept <= {report["begins"] for report in reports}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_an_input_is_known_by_its_number(target) -> None:
    assert target.seeds() and all(target.mutant(n) == target.mutant(n) for n in range(3))
    assert len({target.mutant(n)[1] for n in range(20)}) > 10


def test_every_kept_file_stands_for_a_valid_one() -> None:
    found = {path for path in SEEDS.rglob("*") if path.parent.name == "found"}
    assert found == {kept for target in TARGETS.values() for kept, _ in target.kept()}
    assert sum(path.stat().st_size for path in SEEDS.rglob("*") if path.is_file()) <= MOST_BYTES


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ("raise KeyError('x')", "KeyError at "),
        ("bytearray(1 << 34)", "MemoryError at "),
        ("import mmap; mmap.mmap(-1, 300 << 20)", "MemoryGrowth: 30"),
    ],
)
def test_a_fault_is_seen(broken: str, fault: str, tmp_path: Path, repo_root: Path) -> None:
    reports = broken_worker(broken, tmp_path, repo_root)[1]
    assert fault in reports[-1]["fault"]


@pytest.mark.parametrize(
    ("broken", "signal"), [("import ctypes; ctypes.string_at(0)", "SIGSEGV"), ("while True: pass", "SIGPROF")]
)
def test_a_crash_and_a_hang_end_the_process(
    broken: str, signal: str, tmp_path: Path, repo_root: Path
) -> None:
    import signal as signals

    code, reports, words = broken_worker(broken, tmp_path, repo_root)
    assert code == -getattr(signals, signal) and "fault" not in reports[-1]
    assert "read_broken" in words


def broken_worker(broken: str, folder: Path, repo_root: Path) -> tuple[int, list[dict[str, str]], str]:
    """The worker on a reader that does `broken` with every input but the valid ones."""
    script = folder / "broken.py"
    script.write_text(
        "from fuzzing import targets, worker\n"
        "from dataclasses import replace\n"
        "worker.CPU_S = 1.0\n"
        "target = targets.TARGETS['jsonl']\n"
        "valid = {seed.read_bytes() for seed in target.seeds()}\n"
        "def read_broken(path):\n"
        "    if path.read_bytes() not in valid:\n"
        f"        {broken}\n"
        "targets.TARGETS['jsonl'] = replace(target, read=read_broken)\n"
        "raise SystemExit(worker.main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(repo_root / "ci")}
    command = [sys.executable, str(script), "jsonl", str(folder / "work"), "--count", "3"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr
