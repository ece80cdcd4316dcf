"""EngineConfig: what the executor and the loop own. A family's own knobs live in its options."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from oasr.errors import OptionsError

DTYPES = ("auto", "float32", "bfloat16", "float16", "int16", "int8")
_WHOLE = ("max_batch_size", "workers", "decode_steps_per_tick", "max_new_tokens")
_REAL = ("max_tick_ms",)
_OPTIONAL = ("threads", "max_decode_slots", "max_batch_seconds", "decode_kv_budget_gib", "max_window_s")
_MOST_THREADS = 1024
"""Readers, or threads of torch. More than a machine has room for end in errors that name something else."""
_REALS = (*_REAL, "max_batch_seconds", "decode_kv_budget_gib", "max_window_s")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Everything that is fixed for the life of an Engine. Frozen: nothing changes it later.

    Attributes:
        model: catalog name, checkpoint folder or file, or hub id.
        device: "auto", "cpu", "cuda" or "cuda:N".
        dtype: compute type; "auto" takes the fastest one that keeps the WER on this device.
        decode_method: family name, or "ctc" (which `decoder_type` splits); None = the model's own.
        decoder_type: what "ctc" means: "ctc_cuda" or "ctc_wfst".
        decode_options: the family's knobs by name; values may be strings.
        legacy_options: deprecated flat names of family knobs (`option(legacy=...)`).
        max_batch_size: rows in one encoder micro-batch.
        max_batch_seconds: padded audio seconds in one micro-batch; None = rows alone decide.
        workers: reader threads.
        threads: intra-op threads of torch on a CPU; None = all cores.
        max_tick_ms, decode_steps_per_tick: bounds of one engine tick for incremental families.
        max_decode_slots: rows decoding at once; None = twice max_batch_size.
        decode_kv_budget_gib: cap on decoder-cache memory; None = no cap beyond the slots.
        decode_admit_window_ms: hold a thin queue this long so that rows prefill together.
        max_new_tokens: longest transcript of one window in tokens.
        vad: how recordings become windows: "pauses" (all of it, cut where the speaker pauses), "none" (whole
            or not at all), or a voice activity detector by name, which leaves out what is no speech.
        max_window_s: longest window in seconds; None = what the model takes.
    """

    model: str = "tiny.en"
    device: str = "auto"
    dtype: str = "auto"
    decode_method: str | None = None
    decoder_type: str = "ctc_cuda"
    decode_options: Mapping[str, Any] = field(default_factory=dict)
    legacy_options: Mapping[str, Any] = field(default_factory=dict)
    max_batch_size: int = 16
    max_batch_seconds: float | None = None
    workers: int = 2
    threads: int | None = None
    max_tick_ms: float = 25.0
    decode_steps_per_tick: int = 32
    max_decode_slots: int | None = None
    decode_kv_budget_gib: float | None = None
    decode_admit_window_ms: float = 0.0
    max_new_tokens: int = 448
    vad: str = "pauses"
    max_window_s: float | None = None

    def __post_init__(self) -> None:
        """Raise OptionsError for a value that no engine could use."""
        if self.model == "":
            raise OptionsError("model: expected a catalog name, checkpoint folder or file, or hub id, got ''")
        if self.dtype not in DTYPES:
            raise OptionsError(f"dtype: expected one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if self.decoder_type not in ("ctc_cuda", "ctc_wfst"):
            raise OptionsError(f"decoder_type: expected ctc_cuda or ctc_wfst, got {self.decoder_type!r}")
        for name in (*_WHOLE, *_REAL, *_OPTIONAL):
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            kind, words = (Real, "a number") if name in _REALS else (Integral, "an integer")
            if not _is(kind, value) or not 0 < value < math.inf:
                raise OptionsError(f"{name}: expected {words} > 0, got {value!r}")
        for name in ("workers", "threads"):
            if (getattr(self, name) or 0) > _MOST_THREADS:
                raise OptionsError(f"{name}: expected at most {_MOST_THREADS}, got {getattr(self, name)}")
        held = self.decode_admit_window_ms
        if not _is(Real, held) or not 0 <= held < math.inf:
            raise OptionsError(f"decode_admit_window_ms: expected a number >= 0, got {held!r}")


def _is(kind: type, value: Any) -> bool:
    """Whether `value` is a `kind` of number; True and False are none."""
    return isinstance(value, kind) and not isinstance(value, bool)
