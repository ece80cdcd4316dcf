"""Random CTC posteriors, and the kernel of include/oasr/ctc_beam.cuh run on the CPU."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from oasr.kernels.ctc_beam import CtcHypothesis, CtcSearch, decode, unpack
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Case:
    log_probs: Tensor
    lengths: Tensor
    search: CtcSearch

    def decoded(self) -> list[tuple[CtcHypothesis, ...]]:
        return unpack(decode(self.log_probs, self.lengths, self.search).cpu())


def random_case(seed: int, most_frames: int = 40, sizes: tuple[int, ...] = (2, 3, 4, 5, 16, 33, 200)) -> Case:
    """Anything the search may meet: flat or peaky, bfloat16's ties, holes, any blank and threshold."""
    rng = np.random.default_rng(seed)
    vocab, frames, rows = int(rng.choice(sizes)), int(rng.integers(0, most_frames)), int(rng.integers(1, 4))
    blank = int(rng.choice([0, vocab - 1, vocab // 2]))
    logits = torch.tensor(rng.normal(size=(rows, frames, vocab)) * rng.choice([0.1, 1, 3, 8]))
    logits[..., blank] += float(rng.choice([0, 2, 5]))
    log_probs = logits.float().log_softmax(-1)
    kind = int(rng.integers(6))
    if kind == 0:
        log_probs[torch.tensor(rng.random(log_probs.shape) < 0.3)] = -math.inf
    elif kind == 1:
        log_probs = log_probs.bfloat16().float()
    lengths = torch.tensor(rng.integers(0, frames + 1, size=rows))
    threshold = float(rng.choice([1, 1, 0.98, 0.5]))
    beam = int(rng.integers(1, 33))
    return Case(log_probs, lengths, CtcSearch(beam, blank, threshold, nbest=beam))


def same(a: list[tuple[CtcHypothesis, ...]], b: list[tuple[CtcHypothesis, ...]]) -> bool:
    """Whether two results agree in every bit."""
    return bits(a) == bits(b)


def bits(rows: list[tuple[CtcHypothesis, ...]]) -> list[list[tuple[object, ...]]]:
    return [
        [(h.tokens, float(h.score).hex(), h.frames.tolist(), h.log_probs.tobytes()) for h in row]
        for row in rows
    ]


class Emulation:
    """The device code built with the C++ compiler, its warps as loops."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            pytest.skip("no C++ compiler")
        library = folder / "ctc_emulation.so"
        source = ROOT / "tests" / "kernels" / "ctc_emulation.cc"
        flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-fPIC", "-shared", f"-I{ROOT / 'include'}"]
        warnings = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-unknown-pragmas"]
        subprocess.run(
            [compiler, *flags, *warnings, str(source), "-o", str(library)], check=True, timeout=280
        )
        self._run = ctypes.CDLL(str(library)).emulate

    def __call__(self, case: Case, order: int = 0) -> list[tuple[CtcHypothesis, ...]]:
        """Decode with the lanes of a warp in one of three orders."""
        x, search = case.log_probs, case.search
        rows, frames, vocab = x.shape
        out = torch.full((rows, search.nbest, 4 + 3 * frames), -7, dtype=torch.int32)
        sizes = np.array(
            [rows, frames, vocab, search.blank_id, search.beam_size, search.nbest], dtype=np.int32
        )
        arrays = [np.array(x.stride()[:2], np.int64), case.lengths.numpy().astype(np.int32), sizes]
        addresses = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        data, result = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())
        self._run(data, *addresses, ctypes.c_float(search.skip_from), order, result)
        return unpack(out)
