"""Fixtures of the command line's tests: `oasr` in this process, a fake engine behind it, small recordings."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import wave
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import oasr_cli.run
from oasr_cli.app import main

HERE = Path(__file__).parent
FAKE_OASR = HERE / "fake_oasr.py"


@dataclass(frozen=True)
class Done:
    """What one command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def oasr(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run `oasr ARGS` in this process, through the entry point that the console script calls."""

    def run(*args: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["oasr", *map(str, args)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit:
            main()
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err or "debug" in args
        return Done(int(exit.value.code or 0), out, err)

    return run


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Put the fake engine in the place of the real one; the list holds those that were made."""
    spec = importlib.util.spec_from_file_location("fake_oasr", FAKE_OASR)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: list[Any] = []

    def load(config: Any) -> Any:
        made.append(module.FakeEngine(config))
        return made[-1]

    monkeypatch.setattr(oasr_cli.run, "load_engine", load)
    return made


@pytest.fixture
def child_env() -> dict[str, str]:
    """Environment in which a child process finds the packages that this one uses."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": ""}


@pytest.fixture
def start_paused(child_env: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `oasr transcribe LIST -o OUT` with the fake engine, and return with the third batch in flight."""
    children = []

    def start(listed: Path, out: Path, **fake: str) -> subprocess.Popen[str]:
        mark = tmp_path / "mark"
        env = child_env | {"OASR_FAKE_PAUSE_IN": "3", "OASR_FAKE_MARK": str(mark)} | fake
        command = [sys.executable, str(FAKE_OASR), "transcribe", str(listed), "-o", str(out), "--progress"]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True)
        children.append(child)
        deadline = time.monotonic() + 240
        while not mark.exists():
            assert child.poll() is None and child.stderr is not None, child.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def kill_server(
    request: pytest.FixtureRequest, child_env: dict[str, str], tmp_path: Path
) -> Iterator[Callable[[list[str], int, Path], int]]:
    """A process that runs commands, each in a fork killed at a change: `kill_server(args, change, folder)`.

    They have the fake engine, or, by an indirect parameter "--serve-real", the real one.
    """
    how = getattr(request, "param", "--serve")
    # A fork has no use for the threads of its parent, so the parent must not have any.
    env = child_env | {"OMP_NUM_THREADS": "1"}
    with (
        (tmp_path / "stderr").open("w") as stderr,
        subprocess.Popen(
            [sys.executable, str(FAKE_OASR), how],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        orders, answers = process.stdin, process.stdout

        def run(args: list[str], die_at: int, folder: Path) -> int:
            asked = {"args": args, "die_at": die_at, "die_in": str(folder)}
            orders.write(json.dumps(asked) + "\n")
            orders.flush()
            return int(answers.readline())

        yield run
        orders.close()
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.fixture
def wav(tmp_path: Path) -> Callable[..., Path]:
    """Write a small 16-bit WAV of square tone: `wav("a.wav", samples=1600, channels=1)`."""

    def write(name: str, samples: int = 1600, channels: int = 1, rate: int = 16000) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frame = b"".join(int(3000 * (c + 1)).to_bytes(2, "little", signed=True) for c in range(channels))
        with wave.open(str(path), "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(frame * samples)
        return path

    return write


@pytest.fixture
def manifest(tmp_path: Path, wav: Callable[..., Path]) -> Callable[..., Path]:
    """Write a JSONL manifest of `count` rows raa, rab, … and their recordings; `extra` lines go last."""

    def write(count: int = 3, *extra: str, name: str = "list.jsonl") -> Path:
        lines = []
        for number in range(count):
            name_of_row = f"r{chr(97 + number // 26)}{chr(97 + number % 26)}"
            wav(f"{name_of_row}.wav", samples=1600 + 160 * number)
            row = {"id": name_of_row, "audio": f"{name_of_row}.wav", "text": f"heard {name_of_row}"}
            lines.append(json.dumps(row))
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in (*lines, *extra)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def read_rows() -> Callable[[Path], list[dict[str, Any]]]:
    """The rows of a results folder."""

    def read(folder: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]

    return read
