"""Which progress display a run gets, and what each shows."""

from __future__ import annotations

import io

import pytest
from oasr.types import RequestOutput, Utterance
from rich.console import Console

from oasr_cli import console, progress
from oasr_cli.tally import Tally

DONE = RequestOutput("x", text="t", duration_s=10.0)


@pytest.fixture
def terminal(monkeypatch):
    screen = io.StringIO()
    shared = Console(file=screen, force_terminal=True, width=80, soft_wrap=True)
    monkeypatch.setattr(console, "stderr", lambda: shared)
    return screen


@pytest.mark.parametrize(
    ("wanted", "kind"), [(None, progress.Progress), (False, progress.Progress), (True, progress.Lines)]
)
def test_without_a_terminal_lines_come_on_request_only(wanted, kind):
    assert type(progress.choose(wanted, Tally())) is kind


@pytest.mark.parametrize(
    ("wanted", "kind"), [(None, progress.Bar), (True, progress.Bar), (False, progress.Progress)]
)
def test_on_a_terminal_the_bar_is_the_default(terminal, wanted, kind):
    assert type(progress.choose(wanted, Tally())) is kind


def test_lines_come_when_their_time_has(capfd):
    now = [0.0]
    tally = Tally(total=3, clock=lambda: now[0])
    tally.start()
    lines = progress.Lines(tally)
    for seconds in (9.0, 10.5, 12.0, 21.0):
        now[0] = seconds
        tally.count(Utterance("x"), DONE)
        lines.update()
    assert [line.split(" · ")[0] for line in capfd.readouterr().err.splitlines()] == ["2/3 rows", "4/3 rows"]


def test_the_bar_shows_the_counts_and_leaves_nothing_behind(terminal):
    now = [0.0]
    tally = Tally(total=2, clock=lambda: now[0])
    bar = progress.Bar(tally)
    bar.start()
    now[0] = 2.0
    tally.count(Utterance("x"), DONE)
    bar.update()
    bar.stop()
    text = terminal.getvalue()
    assert "1/2 rows · 5.0× real time · 2.0 s left" in text
    assert text.endswith("\x1b[2K") or text.rstrip("\r\n").endswith("\x1b[2K")


def test_the_bar_steps_aside_for_rows_on_the_same_terminal(terminal, monkeypatch):
    monkeypatch.setattr(console, "stdout_is_terminal", lambda: True)
    bar = progress.Bar(Tally(total=2))
    bar.start()
    with bar.aside():
        length = len(terminal.getvalue())
        assert "\x1b[2K" in terminal.getvalue()[-20:]
        bar.update()
        assert len(terminal.getvalue()) == length
    assert len(terminal.getvalue()) > length
    bar.stop()
