"""How far a clip is padded when the model has no fixed window."""

from __future__ import annotations

_SHORTEST_S = 0.5
_STEPS = 8


def padded_samples(n_samples: int, sample_rate: int) -> int:
    """The smallest of a fixed series of lengths that holds a clip of `n_samples`.

    Only rows of one padded length share a batch, and that length may depend on nothing but the
    row. A series with eight lengths an octave, from half a second up, wastes at most an eighth
    of a batch (a sixteenth on average) and leaves few enough lengths for batches to fill.
    """
    octave = round(_SHORTEST_S * sample_rate)
    while 2 * octave < n_samples:
        octave *= 2
    step = -(-octave // _STEPS)
    return max(octave, -(-n_samples // step) * step)
