"""Who follows a measurement while it goes on. Loads no numerical library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oasr.types import RequestOutput, RowFailure, Utterance

if TYPE_CHECKING:
    from oasr.bench.runs import Pass
    from oasr.engine import Engine

Row = Utterance | RowFailure


class Watch:
    """Follows a measurement. This base shows nothing and never stops it."""

    @property
    def stopped(self) -> bool:
        """True once the measurement shall end; a pass that was under way then does not count."""
        return False

    def begin(self, engine: Engine, name: str) -> None:
        """A pass called `name` starts."""

    def result(self, row: Row, output: RequestOutput) -> None:
        """A result came out."""

    def end(self, done: Pass) -> None:
        """The pass is over."""
