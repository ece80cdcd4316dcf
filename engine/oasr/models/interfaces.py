"""What a model offers and what a decode family asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import Tensor, nn

from oasr.errors import CapabilityError, OptionsError

if TYPE_CHECKING:
    from oasr.types import DecodingOptions, Request

CAPABILITIES: dict[str, tuple[str, ...]] = {
    "aed": (
        "encode_offline",
        "decoder.prefill",
        "decoder.prefill_probed",
        "decoder.step",
        "decoder.select",
        "decoder.can_merge",
        "decoder.merge",
        "prompt_tokens",
        "validate_language",
        "is_multilingual",
        "language_ids",
        "sot_id",
        "eos_id",
        "suppress_ids",
        "begin_suppress_ids",
        "max_positions",
    ),
    "ctc": ("forward_offline", "blank_id"),
    "ctc_aed_rescoring": (
        "encode_offline",
        "frame_log_probs",
        "blank_id",
        "decoder.memory",
        "decoder.score",
        "reverse_weight",
    ),
}
"""Capability name → dotted members that a model must expose to serve it."""


def declare_capability(name: str, members: Sequence[str]) -> None:
    """Add a capability from outside the package; a different claim on a known name is refused."""
    known = CAPABILITIES.setdefault(name, tuple(members))
    if known != tuple(members):
        raise CapabilityError(f"capability {name!r} is declared already with members {', '.join(known)}")


def require_capability(model: AsrModel, capability: str) -> None:
    """Check once, at construction, that `model` can serve `capability`.

    Raises:
        CapabilityError: the checkpoint does not advertise it, or lacks members; the message names the
            missing members, and the families that are advertised instead.
    """
    missing = [path for path in CAPABILITIES.get(capability, ()) if not _has(model, path)]
    lacks = f"lacks the model members: {', '.join(missing)}"
    if capability not in model.capabilities:
        raise CapabilityError(
            f"this {model.architecture} checkpoint cannot decode with {capability!r}; "
            f"it offers: {', '.join(model.capabilities) or 'nothing'}" + (f", and {lacks}" if missing else "")
        )
    if capability not in CAPABILITIES:
        raise CapabilityError(
            f"capability {capability!r} is not declared, so nobody knows which model members it needs; "
            "the package that brings the decode family has to call declare_capability"
        )
    if missing:
        raise CapabilityError(f"this {model.architecture} checkpoint advertises {capability!r} but {lacks}")


def _has(model: object, path: str) -> bool:
    for name in path.split("."):
        # None counts as absent: a checkpoint without a decoder has `decoder = None`.
        if getattr(model, name, None) is None:
            return False
        model = getattr(model, name)
    return True


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """What one encoder forward hands to a decode family.

    Attributes:
        lengths: (B,) int64 valid frames of each row, on the host.
        hidden: (B, T', D), when the family consumes hidden states.
        log_probs: (B, T', V) float32, when it consumes log-probabilities.
        extras: what else the model derived for each row of the batch (tensors with B rows).
    """

    lengths: Tensor
    hidden: Tensor | None = None
    log_probs: Tensor | None = None
    extras: Mapping[str, Tensor] | None = None

    def rows(self, index: Tensor) -> EncoderOutput:
        """The same output restricted to the rows `index` (int64, on the host)."""

        def pick(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.index_select(0, index.to(x.device))

        extras = (
            None
            if self.extras is None
            else {k: v for k, x in self.extras.items() if (v := pick(x)) is not None}
        )
        return replace(
            self,
            lengths=self.lengths[index],
            hidden=pick(self.hidden),
            log_probs=pick(self.log_probs),
            extras=extras,
        )


class Frontend(Protocol):
    """Waveform → features, batched, on the model's device.

    `window_samples(n)` is the padded length, in samples, that a clip of `n` samples occupies in a
    batch; it is a function of the clip alone, so that no row depends on its neighbours.
    """

    sample_rate: int

    def window_samples(self, n_samples: int) -> int:
        """Padded samples that a clip of `n_samples` occupies."""
        ...

    def __call__(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) float32 zero-padded samples, (B,) lengths → (B, T, F) features, (B,) frames.

        Lengths and frames are int64 on the host, whatever the device of samples and features.
        """
        ...


class AsrModel(nn.Module):
    """Base of every architecture: an encoder, the families it serves, its front end and tokenizer.

    Subclasses set the class attributes, build their modules, and expose the members that
    CAPABILITIES names for each family in `capabilities`.
    """

    architecture: ClassVar[str] = ""
    default_decode_type: ClassVar[str] = ""
    encoder_options: ClassVar[tuple[str, ...]] = ()
    frame_shift_ms: float = 10.0
    lfr_n: int = 1
    subsampling_rate: int | None = None
    max_window_s: float | None = None
    # `aed`: the token whose probability at the start says that nobody speaks; None = the model knows none.
    no_speech_id: int | None = None
    frontend: Frontend
    tokenizer: Any

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Families that this checkpoint can serve."""
        return (self.default_decode_type,)

    @property
    def offers_fixed16(self) -> bool:
        """True when `use_fixed16` works for this checkpoint on this processor."""
        return False

    def use_fixed16(self) -> None:
        """Replace the hot path by 16-bit fixed-point kernels, in place (CPU).

        Raises:
            OptionsError: this checkpoint or processor has none.
        """
        raise OptionsError(f"dtype int16: this {self.architecture} checkpoint has no fixed-point path")

    def stated_language(self, options: DecodingOptions) -> str | None:
        """The language of a row before anything is decoded: as asked; None = it has to be heard."""
        return options.language

    def decoder_row_bytes(self, window_samples: int, max_new_tokens: int) -> int:
        """Most decoder-cache bytes that a row of such a window can take; 0 = there is no such cache."""
        return 0

    def validate_encoder_options(self, options: DecodingOptions) -> None:
        """Check the values of options that condition the encoder (`encoder_options`)."""

    def encoder_conditioning(self, requests: Sequence[Request]) -> Mapping[str, Tensor]:
        """Extra per-row keyword tensors for `encode_offline`; most models need none."""
        return {}

    def encode_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, F) features → hidden states."""
        raise CapabilityError(f"{self.architecture} has no encoder forward for hidden states")

    def frame_log_probs(self, encoder_out: EncoderOutput) -> Tensor:
        """(B, T', V) log-probabilities of the frame-wise head over hidden states, for `consumes="both"`."""
        raise CapabilityError(f"{self.architecture} has no frame-wise output head")

    def forward_offline(self, features: Tensor, lengths: Tensor, **conditioning: Tensor) -> EncoderOutput:
        """(B, T, F) features → log-probabilities of a frame-wise head."""
        raise CapabilityError(f"{self.architecture} has no frame-wise output head")
