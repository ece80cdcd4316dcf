"""How a run shows that it is alive: a bar on a terminal, a line now and then elsewhere, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oasr_cli import console
from oasr_cli.tally import Tally

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

LINE_EVERY_S = 10.0
LINE_WIDTH = 70


class Progress:
    """Shows a Tally while the run goes on. This base shows nothing."""

    def start(self) -> None:
        """Begin to show."""

    def update(self) -> None:
        """The tally changed."""

    def stop(self) -> None:
        """Take it away; may be called twice."""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep off the terminal while the block writes to stdout."""
        yield


def choose(wanted: bool | None, tally: Tally) -> Progress:
    """The progress display for `--progress` (True), `--no-progress` (False) or neither (None)."""
    terminal = console.stderr().is_terminal
    if wanted is False or (wanted is None and not terminal):
        return Progress()
    return Bar(tally) if terminal else Lines(tally)


class Lines(Progress):
    """A line on stderr whenever some seconds have passed since the last one."""

    def __init__(self, tally: Tally) -> None:
        """`tally` is shown, and its clock is the one that counts."""
        self._tally = tally
        self._last = tally.clock()

    def update(self) -> None:
        """Print a line when one is due."""
        now = self._tally.clock()
        if now - self._last >= LINE_EVERY_S:
            self._last = now
            console.note(self._tally.progress_line())


class Bar(Progress):
    """A rich bar that vanishes when the run ends: the summary says it all."""

    def __init__(self, tally: Tally) -> None:
        """`tally` is shown."""
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._tally = tally
        # The line ends short of the edge: there the terminal's own echo of ^C would break it in two.
        room = console.stderr().width - LINE_WIDTH
        self._bar: RichProgress = RichProgress(
            SpinnerColumn(),
            BarColumn(bar_width=min(40, max(4, room))),
            TextColumn("{task.fields[line]}", markup=False),
            console=console.stderr(),
            transient=True,
            # Else rich puts objects of its own in the place of both streams while the bar is there.
            redirect_stdout=False,
            redirect_stderr=False,
            refresh_per_second=4,
        )
        self._task = self._bar.add_task("", total=tally.total, line=tally.progress_line())

    def start(self) -> None:
        """Draw the bar."""
        self._bar.start()

    def update(self) -> None:
        """Hand the new counts to the bar, which draws itself a few times a second."""
        self._bar.update(self._task, completed=self._tally.done, line=self._tally.progress_line())

    def stop(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bar away while stdout, which is the same terminal, gets its lines."""
        if not console.stdout_is_terminal():
            yield
            return
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()
