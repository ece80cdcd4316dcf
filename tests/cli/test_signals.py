"""SIGINT and SIGTERM in a process of its own: what is written, and the exit code."""

from __future__ import annotations

import signal

import pytest


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_finishes_the_batch_in_flight(
    oasr, engines, manifest, tmp_path, start_paused, read_rows, signum, code
):
    listed, out = manifest(40), tmp_path / "out"
    child = start_paused(listed, out)
    child.send_signal(signum)
    stdout, stderr = child.communicate(timeout=240)
    assert child.returncode == code and stdout == ""
    assert "Traceback" not in stderr and "finishing the batch in flight" in stderr
    assert f"stopped by {signal.Signals(signum).name}: 28 rows are left; --resume goes on from here" in stderr
    assert [row["id"] for row in read_rows(out)] == [f"ra{chr(97 + n)}" for n in range(12)]

    assert oasr("transcribe", listed, "-o", out, "--resume").code == 0
    assert oasr("transcribe", listed, "-o", tmp_path / "whole").code == 0
    assert (out / "results.jsonl").read_bytes() == (tmp_path / "whole" / "results.jsonl").read_bytes()


def test_the_second_signal_stops_at_once(manifest, tmp_path, start_paused, read_rows):
    listed, out = manifest(40), tmp_path / "out"
    child = start_paused(listed, out, OASR_FAKE_STUBBORN="1")
    child.send_signal(signal.SIGINT)
    while "finishing" not in (line := child.stderr.readline()):
        assert line
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=240)
    assert child.returncode == 130 and "Traceback" not in stderr
    assert len(read_rows(out)) == 8


def test_a_killed_run_loses_only_the_rows_in_flight(
    oasr, engines, manifest, tmp_path, start_paused, read_rows
):
    listed, out = manifest(40), tmp_path / "out"
    child = start_paused(listed, out)
    child.kill()
    child.communicate(timeout=240)
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
