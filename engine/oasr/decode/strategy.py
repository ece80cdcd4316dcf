"""The decode axis: what a family declares, the hooks an executor may use, and how one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import torch

from oasr.decode.alignment import FrameClock
from oasr.decode.options import describe, resolve
from oasr.errors import CapabilityError, OptionsError, RequestError
from oasr.models.interfaces import AsrModel, EncoderOutput, require_capability
from oasr.registry import Registry
from oasr.types import DecodingOptions, Hypothesis, Request

if TYPE_CHECKING:
    from oasr.config import EngineConfig
    from oasr.executor.budget import StepBudget

NBest = tuple[Hypothesis, ...]
SELECTIVE = ("task", "language", "prompt", "word_timestamps")
"""Options that say *what* is decoded: a family that cannot honour one refuses the request."""


class PendingDecode(Protocol):
    """A decode whose results are still on their way to the host."""

    def collect(self) -> list[NBest]:
        """Wait for the copy and return one n-best per request, in order."""
        ...


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Options of a family that has none."""


class DecodeStrategy:
    """Turns encoder output into hypotheses. One instance serves one engine.

    A frame-synchronous or one-shot family implements `decode_offline`. A label-synchronous family
    sets `incremental` and implements `begin_offline`, `advance`, `has_pending` and `abort`.

    Class attributes:
        name: registry name, set by `register_decode_strategy`.
        capability: the entry of CAPABILITIES that a model must offer.
        consumes: which encoder output is asked for ("log_probs", "hidden" or "both").
        incremental: True when the family is advanced tick by tick.
        options_cls: the family's own options dataclass.
        selective_options: the members of SELECTIVE that the family can honour.
        max_n_best: the largest n-best it can return under its options.
    """

    name: ClassVar[str] = ""
    capability: ClassVar[str] = ""
    consumes: ClassVar[Literal["log_probs", "hidden", "both"]] = "hidden"
    incremental: ClassVar[bool] = False
    options_cls: ClassVar[type] = NoOptions
    selective_options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: AsrModel, options: Any, config: EngineConfig) -> None:
        """Bind to `model` with resolved `options`; use `build_decode_strategy` instead."""
        # What a family may use of its model is checked by `require_capability`, not by the type.
        self.model: Any = model
        self.options = options
        self.config = config

    @property
    def clock(self) -> FrameClock | None:
        """Frames → seconds; None when the model does not declare its geometry."""
        return FrameClock.of(self.model)

    @property
    def device(self) -> torch.device:
        """Where the model sits."""
        return next(self.model.parameters()).device

    # What the family can do under its present options -----------------------------------------

    @property
    def word_timing_modes(self) -> tuple[str, ...]:
        """Modes ("offline", "streaming") in which word timings exist; depends on the options."""
        return ()

    @property
    def max_n_best(self) -> int:
        """Most hypotheses that one request can get."""
        return 1

    def validate_options(self, options: DecodingOptions, mode: str = "offline") -> None:
        """Refuse what this family or checkpoint cannot honour; runs at every admission.

        Raises:
            RequestError: names the option and what would work instead.
        """
        able = {*self.selective_options, *self.model.encoder_options}
        # A row writes an empty prompt to have none in the place of the run's: it asks for nothing.
        prompt = options.prompt if options.prompt and options.prompt.strip() else None
        for name, asked in (("task", options.task), ("language", options.language), ("prompt", prompt)):
            if asked is not None and name not in able:
                raise RequestError(
                    f"decode family {self.name!r} on this {self.model.architecture} checkpoint "
                    f"has no control for {name!r} (got {asked!r}); leave it out"
                )
        if options.word_timestamps and mode not in self.word_timing_modes:
            modes = ", ".join(self.word_timing_modes) or "none"
            raise RequestError(
                f"decode family {self.name!r} cannot time words {mode}; modes that work: {modes}"
            )
        if options.word_timestamps and self.clock is None:
            raise RequestError(
                "word times need the length of an encoder frame, which this "
                f"{self.model.architecture} checkpoint does not declare (frame_shift_ms, lfr_n and "
                "subsampling_rate); leave word_timestamps out"
            )
        if options.n_best > self.max_n_best:
            raise RequestError(
                f"decode family {self.name!r} returns at most {self.max_n_best} hypotheses "
                f"with its present options, {options.n_best} were asked for"
            )
        self.model.validate_encoder_options(options)

    def window_samples(self, request: Request) -> int:
        """Padded samples that `request` occupies in a batch; a function of the request alone."""
        return self.model.frontend.window_samples(len(request.samples))

    # One-shot families ------------------------------------------------------------------------

    def decode_offline(self, encoder_out: EncoderOutput, requests: Sequence[Request]) -> list[NBest]:
        """Decode a micro-batch; returns one n-best per request, best first."""
        raise CapabilityError(f"decode family {self.name!r} is incremental; drive it with begin_offline")

    def decode_offline_async(
        self, encoder_out: EncoderOutput, requests: Sequence[Request]
    ) -> PendingDecode | None:
        """Queue the decode and its read-back; None means "decode synchronously instead"."""
        return None

    # Incremental families ---------------------------------------------------------------------

    def begin_offline(self, encoder_out: EncoderOutput, requests: Sequence[Request]) -> None:
        """Prefill a micro-batch and park its rows in the pending pool."""
        raise CapabilityError(f"decode family {self.name!r} is one-shot; call decode_offline")

    def advance(self, budget: StepBudget) -> list[tuple[Request, NBest]]:
        """Run decoder steps while `budget.take()` allows; return the rows that finished."""
        return []

    def has_pending(self) -> bool:
        """True while rows are in the pending pool."""
        return False

    def pending_rows(self) -> int:
        """Rows in the pending pool (they occupy decode slots)."""
        return 0

    def row_bytes(self, window_samples: int) -> int:
        """Decoder-cache bytes that one row of that window reserves, by default as the model says."""
        return self.model.decoder_row_bytes(window_samples, self.config.max_new_tokens)

    def abort(self) -> list[Request]:
        """Empty the pending pool and return its requests (after a failed step)."""
        return []

    def reconsider(self, request: Request, hypotheses: NBest) -> Request | None:
        """A replacement request when the result must not be trusted, else None."""
        return None

    # Streaming hooks --------------------------------------------------------------------------

    def finalize(self, request: Request) -> NBest:
        """End one stream and return its result."""
        raise CapabilityError(f"decode family {self.name!r} does not stream")

    def finalize_batch(self, requests: Sequence[Request]) -> list[NBest]:
        """End several streams in one tick."""
        return [self.finalize(request) for request in requests]

    def prewarm_streaming(self, batch_sizes: Sequence[int], frames: int) -> None:
        """Prepare per-width state before the first live tick; nothing by default."""


S = TypeVar("S", bound=type[DecodeStrategy])
FAMILIES: Registry[type[DecodeStrategy]] = Registry(
    "decode family",
    "oasr.decode_families",
    {
        "aed": "oasr.decode.aed:AedDecodeStrategy",
        "ctc_aed_rescoring": "oasr.decode.rescoring:CtcAedRescoringStrategy",
        "ctc_cuda": "oasr.decode.ctc_gpu:CtcGpuDecodeStrategy",
    },
)


def register_decode_strategy(name: str) -> Callable[[S], S]:
    """Class decorator: make a DecodeStrategy selectable as `name`."""

    def add(cls: S) -> S:
        cls.name = name
        FAMILIES.register(name)(cls)
        return cls

    return add


def build_decode_strategy(model: AsrModel, config: EngineConfig) -> DecodeStrategy:
    """The strategy that `config` selects for `model`, checked once, with its options resolved.

    Raises:
        OptionsError: unknown family, option or value.
        CapabilityError: the checkpoint cannot serve the family; names the missing members.
    """
    method = model.default_decode_type if config.decode_method is None else config.decode_method
    name = config.decoder_type if method == "ctc" else method
    family = FAMILIES.get(name)
    family.name = family.name or name  # a class named by an entry point alone
    require_capability(model, family.capability)
    _check_legacy(config)
    options: Any = resolve(family.options_cls, config.legacy_options, config.decode_options)
    return family(model, options, config)


def _check_legacy(config: EngineConfig) -> None:
    """Refuse flat names that no family declares, so that a typo is never ignored."""
    if not config.legacy_options:
        return
    known = {spec.legacy for _, cls in FAMILIES.items() for spec in describe(cls.options_cls) if spec.legacy}
    unknown = sorted(set(config.legacy_options) - known)
    if unknown:
        raise OptionsError(
            f"unknown legacy option {', '.join(unknown)}; known: {', '.join(sorted(known)) or 'none'}"
        )
