"""CTC decoding of a batch: C++ on a CPU, one kernel launch on a GPU, the same bits on both.

`decode` queues the work and gives one tensor, `unpack` reads it on the host:

    packed = decode(log_probs, lengths, CtcSearch(beam_size=10, nbest=3))
    rows = unpack(packed.cpu())             # rows[b][n].tokens, .score, .frames, .log_probs

The search is the one of include/oasr/ctc_search.h; a beam of 1 is the best path. On a GPU nothing waits for
the device until the results are copied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oasr.kernels import jit
from oasr.kernels.fused import served
from oasr.native import extension
from oasr.reinstall import pip_install

MOST_BEAMS = 32
"""The widest beam of the kernel, which has a lane for each prefix."""

_HEADER = 4  # integers before a hypothesis's tokens: length, padding, and the score's two halves
_WARPS = 8  # of a block, as in include/oasr/ctc_beam.cuh
_BLOCKS_A_PROCESSOR = 4  # what a multiprocessor's registers hold


@dataclass(frozen=True, slots=True)
class CtcSearch:
    """What is searched for.

    Attributes:
        beam_size: prefixes kept after each frame; 1 is the best path, collapsed.
        blank_id: the blank's token id.
        blank_threshold: frames whose blank probability is at least this are left out and add nothing to
            a score; from 1 on every frame is kept, down from 0 none is.
        nbest: hypotheses of a row, at most beam_size.
    """

    beam_size: int = 10
    blank_id: int = 0
    blank_threshold: float = 1.0
    nbest: int = 1

    @property
    def skip_from(self) -> float:
        """The blank log-probability, a float32, from which a frame is left out."""
        if self.blank_threshold >= 1:
            return math.inf
        return float(np.float32(math.log(self.blank_threshold))) if self.blank_threshold > 0 else -math.inf


class CtcHypothesis(NamedTuple):
    """One candidate.

    `score` is its log-probability in nats, minus infinity when the row allows no prefix at all; `frames` are
    the frames that its tokens were emitted at, increasing; `log_probs` the larger log-probability of each
    token in its frame and the one after.
    """

    tokens: tuple[int, ...]
    score: float
    frames: NDArray[np.int32]
    log_probs: NDArray[np.float32]


def decode(log_probs: Tensor, lengths: Tensor, search: CtcSearch) -> Tensor:
    """Search every row.

    Args:
        log_probs: float32 (B, T, V) on a CPU or a GPU, any strides. Minus infinity is allowed; NaN
            counts as that. What lies behind a row's length is never read.
        lengths: int64 (B) on the host, frames of each row.
        search: the parameters.

    Returns:
        What `unpack` takes, on the device of `log_probs`; on a GPU the work is queued on the current
        stream. A search that the kernel does not serve (`gap`) waits for the log-probabilities and runs
        on the CPU.

    Raises:
        ValueError: names the argument that does not fit.
    """
    _check(log_probs, lengths, search)
    # What no row reaches would cost memory in the tree and places in the results.
    log_probs = log_probs[:, : int(lengths.max()) if len(lengths) else 0]
    if log_probs.stride(2) != 1:
        log_probs = log_probs.contiguous()
    if not log_probs.is_cuda or 0 in log_probs.shape:
        return _on_cpu(log_probs.cpu(), lengths, search)
    if not served("ctc_beam", gap(log_probs, search)):
        return _on_cpu(log_probs.cpu(), lengths, search)
    return _on_gpu(log_probs, lengths, search)


def widest_beam(vocab: int) -> int:
    """The largest beam_size of any search over so many labels."""
    # Candidates are numbered slot · vocab + token, in 32 bits.
    return (2**32 - 1) // max(vocab, 1)


def gap(log_probs: Tensor, search: CtcSearch) -> str | None:
    """Why the kernel cannot serve this search; None when it can."""
    rows, frames, vocab = log_probs.shape
    if search.beam_size > MOST_BEAMS:
        return f"a beam over {MOST_BEAMS}"
    if max(rows * frames, vocab * MOST_BEAMS, frames * MOST_BEAMS) >= 2**31:
        return "more frames or tokens than its indices hold"
    return None if jit.usable(log_probs.device) else f"no kernels on this device ({pip_install('cuda')})"


def supports(log_probs: Tensor, search: CtcSearch) -> bool:
    """Whether the kernel serves this search: on a GPU, a beam of at most MOST_BEAMS."""
    return log_probs.is_cuda and log_probs.dtype == torch.float32 and gap(log_probs, search) is None


def unpack(packed: Tensor) -> list[tuple[CtcHypothesis, ...]]:
    """The hypotheses of each row, best first, at least one, from what `decode` gave, copied to the host."""
    values = packed.numpy()
    places = (values.shape[2] - _HEADER) // 3
    # Copied, because a row may be an odd number of integers and its double unaligned.
    scores = values[:, :, 2:_HEADER].copy().view(np.float64)[:, :, 0]
    rows = []
    for row, row_scores in zip(values, scores, strict=True):
        found = []
        for one, score in zip(row, row_scores, strict=True):
            if (length := int(one[0])) < 0:
                break
            tokens, frames, posteriors = (one[_HEADER + k * places :][:length] for k in range(3))
            found.append(
                CtcHypothesis(tuple(tokens.tolist()), float(score), frames, posteriors.view(np.float32))
            )
        rows.append(tuple(found))
    return rows


def device_code(beam_size: int) -> jit.DeviceCode:
    """The kernel for one width of the beam."""
    return jit.DeviceCode("oasr/ctc_beam.cuh", "oasr_ctc_beam", (("OASR_CTC_BEAM", str(beam_size)),))


def _check(log_probs: Tensor, lengths: Tensor, search: CtcSearch) -> None:
    if log_probs.dim() != 3 or log_probs.dtype != torch.float32:
        raise ValueError(
            f"log_probs: expected float32 (B, T, V), got {log_probs.dtype} {tuple(log_probs.shape)}"
        )
    rows, frames, vocab = log_probs.shape
    if lengths.shape != (rows,) or lengths.dtype != torch.int64 or lengths.device.type != "cpu":
        raise ValueError(
            f"lengths: expected int64 ({rows},) on cpu, got {lengths.dtype} {tuple(lengths.shape)} "
            f"on {lengths.device}"
        )
    if rows and not 0 <= int(lengths.min()) <= int(lengths.max()) <= frames:
        raise ValueError(f"lengths: expected 0 to {frames}, got {lengths.tolist()}")
    for name, value, most in (
        ("blank_id", search.blank_id + 1, vocab),
        ("beam_size", search.beam_size, widest_beam(vocab)),
        ("nbest", search.nbest, search.beam_size),
    ):
        if not 1 <= value <= most:
            raise ValueError(f"{name}: {search} does not fit a vocabulary of {vocab}")


def _on_cpu(log_probs: Tensor, lengths: Tensor, search: CtcSearch) -> Tensor:
    rows, frames, _ = log_probs.shape
    native = extension()
    threads = torch.get_num_threads()
    if native.fixed16.threads() != threads:  # the pool is one for the whole extension
        native.fixed16.set_threads(threads)
    lengths = lengths.contiguous()
    out = torch.empty(rows, search.nbest, _HEADER + 3 * frames, dtype=torch.int32)
    parameters = native.ctc.Search(search.beam_size, search.blank_id, search.skip_from, search.nbest)
    native.ctc.decode(
        log_probs.data_ptr(),
        tuple(log_probs.shape),
        log_probs.stride()[:2],
        lengths.data_ptr(),
        parameters,
        out.data_ptr(),
    )
    return out


def _on_gpu(log_probs: Tensor, lengths: Tensor, search: CtcSearch) -> Tensor:
    rows, frames, vocab = log_probs.shape
    device, beam = log_probs.device, search.beam_size
    # Of each frame a node of 8 bytes a prefix, three numbers a candidate, and the blank's.
    work = torch.empty(rows * frames * (8 * beam + 3 * 8 * beam + 4), dtype=torch.uint8, device=device)
    # The counter that hands out frames, then one flag a frame: 0 is "not prepared yet".
    flags = torch.zeros(rows * frames + 1, dtype=torch.int32, device=device)
    out = torch.empty(rows, search.nbest, _HEADER + 3 * frames, dtype=torch.int32, device=device)
    # From pinned memory, or the copy could wait for what is queued already.
    frames_of = lengths.to(torch.int32).pin_memory().to(device, non_blocking=True)
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    # One block a row walks; further ones only prepare frames, as many as the GPU holds at once.
    blocks = max(rows, min(_BLOCKS_A_PROCESSOR * processors, rows + -(-rows * frames // _WARPS)))
    sizes = (rows, frames, vocab, search.blank_id, np.float32(search.skip_from), search.nbest)
    arguments = (log_probs, *log_probs.stride()[:2], frames_of, *sizes, flags, work, out)
    jit.launch(device_code(beam), device, (blocks, 32 * _WARPS), arguments)
    return out
