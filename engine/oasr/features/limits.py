"""Sizes that a front end may have, so that a damaged configuration makes no tables of gigabytes."""

from __future__ import annotations

from oasr.errors import CheckpointError

RATES = (1_000, 384_000)
MEL_BINS = (1, 1024)
WINDOW_SAMPLES = (1, 1 << 16)
"""Of a frame, a shift or a transform: two seconds at 32 kHz, fifty times what is in use."""


def check_sizes(**sizes: tuple[int, tuple[int, int]]) -> None:
    """Raise CheckpointError for a size, (value, (least, most)), that lies outside its range."""
    for name, (value, (least, most)) in sizes.items():
        if not least <= value <= most:
            raise CheckpointError(f"features: {name}: expected {least} to {most}, found {value}")
