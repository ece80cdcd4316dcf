"""SIGINT and SIGTERM in a process of its own: what is written, and the exit code."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fake_oasr.py")


def _start(listed, out, env, mark, **fake):
    env = env | {"OASR_FAKE_PAUSE_IN": "3", "OASR_FAKE_MARK": str(mark)} | fake
    command = [sys.executable, str(SCRIPT), "transcribe", str(listed), "-o", str(out), "--progress"]
    child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _wait_for(mark.exists, child)
    return child


def _wait_for(condition, child):
    deadline = time.monotonic() + 60
    while not condition():
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_finishes_the_batch_in_flight(
    oasr, engines, manifest, tmp_path, child_env, read_rows, signum, code
):
    listed, out = manifest(40), tmp_path / "out"
    child = _start(listed, out, child_env, tmp_path / "mark")
    child.send_signal(signum)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == code and stdout == ""
    assert "Traceback" not in stderr and "finishing the batch in flight" in stderr
    assert f"stopped by {signal.Signals(signum).name}: 28 rows are left; --resume goes on from here" in stderr
    assert [row["id"] for row in read_rows(out)] == [f"ra{chr(97 + n)}" for n in range(12)]

    assert oasr("transcribe", listed, "-o", out, "--resume").code == 0
    assert oasr("transcribe", listed, "-o", tmp_path / "whole").code == 0
    assert (out / "results.jsonl").read_bytes() == (tmp_path / "whole" / "results.jsonl").read_bytes()


def test_the_second_signal_stops_at_once(manifest, tmp_path, child_env, read_rows):
    listed, out = manifest(40), tmp_path / "out"
    child = _start(listed, out, child_env, tmp_path / "mark", OASR_FAKE_STUBBORN="1")
    child.send_signal(signal.SIGINT)
    while "finishing" not in (line := child.stderr.readline()):
        assert line
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130 and "Traceback" not in stderr
    assert len(read_rows(out)) == 8


def test_a_killed_run_loses_only_the_rows_in_flight(oasr, engines, manifest, tmp_path, child_env, read_rows):
    listed, out = manifest(40), tmp_path / "out"
    child = _start(listed, out, child_env, tmp_path / "mark")
    child.kill()
    child.communicate(timeout=60)
    assert len(read_rows(out)) == 8
    assert oasr("transcribe", listed, "-o", out, "--resume").code == 0
    assert oasr("transcribe", listed, "-o", tmp_path / "whole").code == 0
    assert (out / "results.jsonl").read_bytes() == (tmp_path / "whole" / "results.jsonl").read_bytes()


def test_a_signal_before_the_work_ends_the_command(oasr, manifest, monkeypatch):
    def interrupted(config):
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the signal was ignored")

    monkeypatch.setattr("oasr_cli.run.load_engine", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    assert oasr("transcribe", manifest(1)).code == 143
    assert signal.getsignal(signal.SIGTERM) is before
