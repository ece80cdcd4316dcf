"""What a run must know of an engine that was loaded elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.facts import loaded_facts
from oasr.errors import RowError
from oasr.types import DecodingOptions

if TYPE_CHECKING:
    from oasr.engine import Engine


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the first engine of a pool says of itself; the others load the same.

    Attributes:
        dtype: compute type that was chosen.
        family: name of the decode family.
        sample_rate: Hz.
        model: as `model_facts` says.
        refusals: why the decoding options of the run cannot be honoured, or None; without word times (False)
            and with them (True), which an output format may ask for.
    """

    dtype: str
    family: str
    sample_rate: int
    model: Mapping[str, Any]
    refusals: Mapping[bool, RowError | None]

    @classmethod
    def of(cls, engine: Engine, options: DecodingOptions) -> EngineFacts:
        """The facts of a loaded engine, about a run with these options."""
        refusals: dict[bool, RowError | None] = {}
        for timed in (False, True):
            try:
                engine.strategy.validate_options(replace(options, word_timestamps=timed))
                refusals[timed] = None
            except RowError as error:
                refusals[timed] = error
        return cls(str(engine.dtype), engine.strategy.name, engine.sample_rate, model_facts(engine), refusals)


def model_facts(engine: Any) -> Mapping[str, Any]:
    """Name, architecture, format and weights (sha256) of the model of an Engine or Fleet, for `run.json`."""
    if isinstance(known := getattr(engine, "facts", None), EngineFacts):
        return known.model
    return loaded_facts(engine.config.model, engine.model)
