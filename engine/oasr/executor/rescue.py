"""After a failed micro-batch: which rows can still be served, and which one was guilty."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from oasr.decode.strategy import NBest
from oasr.errors import DecodeError, RowError
from oasr.executor.counters import Counters
from oasr.types import Request

log = logging.getLogger("oasr.executor")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request: an n-best, or the error that its row carries."""

    request: Request
    hypotheses: NBest = ()
    error: RowError | None = None


def rescue(
    run: Callable[[Sequence[Request]], list[Outcome]],
    requests: Sequence[Request],
    error: Exception,
    counters: Counters,
) -> list[Outcome]:
    """Run the rows of a failed batch again with nothing else in memory.

    Out of memory: the rows are halved and retried, down to one. Any other error: each row alone.
    A row that still fails becomes an error outcome; its neighbours get their results.

    Args:
        run: encodes and decodes rows to the end, raising on failure.
        requests: the rows of the failed batch.
        error: what it failed with.
        counters: `oom_splits` and `isolated` are counted up.
    """
    log.warning("a batch of %d rows failed (%s); retrying its rows", len(requests), _first_line(error))
    if out_of_memory(error):
        counters.oom_splits += 1
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        # One row gets one more try: what else was in memory is gone by now.
        half = (len(requests) + 1) // 2
        parts = [requests[:half], requests[half:]]
    else:
        counters.isolated += len(requests)
        parts = [[request] for request in requests]
    outcomes: list[Outcome] = []
    for part in filter(None, parts):
        again: Exception | None = None
        try:
            outcomes += run(part)
        except Exception as raised:
            again = forget_frames(raised)
        # Behind the except clause: within it, every error of a retry would carry this one as its context.
        if again is not None and len(part) == 1:
            outcomes.append(Outcome(part[0], error=_as_row_error(again)))
        elif again is not None:
            outcomes += rescue(run, part, again, counters)
    return outcomes


def forget_frames(error: Exception) -> Exception:
    """`error` without its traceback, whose frames keep the failed batch's tensors alive."""
    chain: BaseException | None = error
    while chain is not None:
        chain.__traceback__ = None
        chain = chain.__cause__ or chain.__context__
    return error


def out_of_memory(error: BaseException) -> bool:
    """True for torch's and Python's own out-of-memory errors, on either device."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    # The CPU allocator of torch raises a plain RuntimeError with this text.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def _as_row_error(error: Exception) -> RowError:
    if isinstance(error, RowError):
        return error
    if out_of_memory(error):
        return DecodeError(
            "out of memory with this row alone; use a smaller model, a smaller dtype or --device cpu"
        )
    return DecodeError(_first_line(error))


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().splitlines()[0]
