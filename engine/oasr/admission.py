"""A row that enters the engine: its options, and its windows as requests."""

from __future__ import annotations

import time
from dataclasses import replace

from oasr.audio.segment import plan_windows
from oasr.types import DecodingOptions, Request, Utterance, Waveform


def row_options(base: DecodingOptions, row: Utterance) -> DecodingOptions:
    """The run's options with what the row itself says about language, task and prompt.

    Raises:
        OptionsError: the row names a value that no model could take.
    """
    own = {
        name: value for name in ("language", "task", "prompt") if (value := getattr(row, name)) is not None
    }
    return replace(base, **own) if own else base


def cut_windows(
    row: Utterance, waveform: Waveform, limit_s: float | None, options: DecodingOptions, key: int
) -> list[Request]:
    """Requests that cover `waveform` exactly once, each at most `limit_s` long.

    Cuts fall into the quietest places before the limit (`audio.segment.plan_windows`); times are
    seconds of the original recording, so the row's offset is added.
    """
    samples, rate = waveform.samples, waveform.sample_rate
    windows = [(0, len(samples))] if limit_s is None else plan_windows(samples, rate, limit_s)
    now = time.perf_counter()
    return [
        Request(
            row.id,
            samples[start:end],
            rate,
            options=options,
            key=key,
            window=number,
            start_s=row.offset + start / rate,
            admitted_at=now,
        )
        for number, (start, end) in enumerate(windows)
    ]
