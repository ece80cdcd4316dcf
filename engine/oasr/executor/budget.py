"""How much decoding one engine tick may do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oasr.config import EngineConfig


@dataclass(slots=True)
class StepBudget:
    """A bound on decoder steps and on wall time; whichever binds first ends the tick.

    A step count alone does not bound a tick, since a step costs microseconds for a tiny decoder and
    tens of milliseconds for a language model. The first step is always granted, so that a tick makes
    progress however slow the machine is.
    """

    steps_left: int
    deadline: float
    used: int = 0

    @classmethod
    def for_tick(cls, config: EngineConfig, timed: bool = True) -> StepBudget:
        """The budget of one tick under `config`; without `timed`, steps alone bound it."""
        deadline = time.monotonic() + config.max_tick_ms / 1000 if timed else float("inf")
        return cls(config.decode_steps_per_tick, deadline)

    @classmethod
    def unlimited(cls) -> StepBudget:
        """A budget that never binds: run until the rows are done."""
        return cls(2**62, float("inf"))

    def take(self) -> bool:
        """Ask for one decoder step; False means stop and keep the rest for the next tick."""
        if self.steps_left <= 0 or (self.used and time.monotonic() >= self.deadline):
            return False
        self.steps_left -= 1
        self.used += 1
        return True

    @property
    def spent(self) -> bool:
        """True when the tick used all it was given."""
        return self.steps_left <= 0 or time.monotonic() >= self.deadline
