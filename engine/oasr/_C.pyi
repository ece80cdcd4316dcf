"""Contract of the compiled module (csrc/): what each binding takes and gives.

A submodule of the extension is an attribute, not an importable module, hence the classes.
"""

import numpy as np
from numpy.typing import NDArray

class alignment:
    """Words and their times (include/oasr/alignment.h). Arrays of other types are converted."""

    @staticmethod
    def time_emissions(
        pieces: list[str],
        frames: NDArray[np.int64],
        log_probs: NDArray[np.float64],
        seconds_per_frame: float,
        offset_s: float,
        duration_s: float,
    ) -> tuple[list[tuple[str, float, float, float]], list[tuple[float, float]], float]: ...
    @staticmethod
    def time_spans(
        pieces: list[str],
        spans: NDArray[np.int64],
        log_probs: NDArray[np.float64],
        seconds_per_frame: float,
        offset_s: float,
        duration_s: float,
    ) -> tuple[list[tuple[str, float, float, float]], list[tuple[float, float]], float]: ...
    @staticmethod
    def warp(scores: NDArray[np.float32]) -> NDArray[np.int64]: ...

class ctc:
    """CTC decoding (include/oasr/ctc_search.h). Arrays are addresses, as `Tensor.data_ptr()` gives them."""

    class Search:
        def __init__(self, beam_size: int, blank_id: int, skip_from: float, nbest: int) -> None: ...

    @staticmethod
    def decode(
        log_probs: int,
        shape: tuple[int, int, int],
        strides: tuple[int, int],
        lengths: int,
        search: ctc.Search,
        out: int,
    ) -> None: ...

class fixed16:
    """Arrays are addresses, as `Tensor.data_ptr()` gives them; 0 leaves one out (include/oasr/fixed16.h)."""

    @staticmethod
    def supported() -> bool: ...
    @staticmethod
    def instruction_set() -> str: ...
    @staticmethod
    def set_threads(n: int) -> None: ...
    @staticmethod
    def threads() -> int: ...
    @staticmethod
    def pack(weight: int, n: int, k: int, packed: int, scales: int) -> None: ...
    @staticmethod
    def linear(
        x: int,
        ldx: int,
        m: int,
        ln_gain: int,
        ln_bias: int,
        n: int,
        k: int,
        packed: int,
        scales: int,
        bias: int,
        out: int,
        ldo: int,
        mode: int,
    ) -> None: ...
    @staticmethod
    def feed_forward(
        x: int,
        m: int,
        d: int,
        ff: int,
        ln_gain: int,
        ln_bias: int,
        w1: int,
        s1: int,
        b1: int,
        w2: int,
        s2: int,
        b2: int,
    ) -> None: ...
    @staticmethod
    def self_attention(qkv: int, batch: int, t: int, heads: int, lens: int, out: int) -> None: ...
    @staticmethod
    def window_project(
        hidden: int,
        batch: int,
        t: int,
        k_dim: int,
        heads: int,
        packed: int,
        scales: int,
        bias: int,
        keys: int,
        values: int,
    ) -> None: ...
    @staticmethod
    def window_attention(
        q: int, keys: int, values: int, frames: int, lens: int, rows: int, heads: int, out: int
    ) -> None: ...
    @staticmethod
    def step_attention(
        q: int,
        keys: int,
        values: int,
        starts: int,
        lens: int,
        rows: int,
        heads: int,
        capacity: int,
        out: int,
    ) -> None: ...

class segmentation:
    @staticmethod
    def next_cut(
        samples: NDArray[np.float32], start: int, sample_rate: int, limit: int
    ) -> tuple[int, bool]: ...
    @staticmethod
    def plan_windows(samples: NDArray[np.float32], sample_rate: int, limit: int) -> list[tuple[int, int]]: ...
