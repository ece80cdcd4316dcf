"""Choosing the next token of each row: greedy by default, sampled where a request asks for it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

from oasr.decode.groups import Row
from oasr.types import DecodingOptions


def select_next_tokens(logits: Tensor, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Pick one token a row.

    Greedy takes the largest logit, ties to the lower id. A row with a temperature draws from its
    own generator, seeded by the request and the step, so a draw depends neither on the batch nor
    on other rows. The reported log-probability is the model's own, before any temperature.

    Args:
        logits: (B, V) float32, masked entries at -inf.
        rows: B rows.

    Returns:
        (B,) int64 token ids and (B,) float32 log-probabilities, on the device of `logits`.
    """
    chosen = logits.argmax(dim=-1)
    for i, row in enumerate(rows):
        # Finished rows are carried along until their group is compacted.
        if row.request.options.temperature > 0 and row.finish_reason is None:
            chosen[i] = _draw(logits[i], row)
    picked = logits.gather(1, chosen[:, None]).squeeze(1)
    return chosen, (picked.double() - log_sum_exp(logits)).float()


def log_sum_exp(logits: Tensor) -> Tensor:
    """(B, V) → (B,) float64.

    Summed in double: torch splits a sum by the size of the batch, and in float32 the order of the
    parts would show in the score.
    """
    largest = logits.amax(dim=-1, keepdim=True)
    sums = (logits - largest).exp_().sum(dim=-1, dtype=torch.float64)
    return largest.squeeze(1).double() + sums.log()


def _draw(logits: Tensor, row: Row) -> int:
    """One sample of softmax(filtered logits / T), drawn on the host in double precision."""
    options, request = row.request.options, row.request
    # An id from a file name that is not UTF-8 holds halves of surrogate pairs, which are refused otherwise.
    key = f"{options.seed}/{request.id}/{request.window}/{len(row.tokens)}".encode(errors="surrogatepass")
    # A checksum, because hash() of a string differs from process to process.
    generator = torch.Generator().manual_seed(zlib.crc32(key))
    scaled = keep_top(logits.double().cpu() / options.temperature, options)
    return int(torch.multinomial(scaled.softmax(dim=-1), 1, generator=generator))


def keep_top(logits: Tensor, options: DecodingOptions) -> Tensor:
    """(V,) logits with everything outside top-k and the top-p nucleus at -inf.

    The token that crosses `top_p` is kept, so at least one always is (Holtzman et al., 2020).
    """
    if options.top_k:
        kth = logits.topk(min(options.top_k, logits.numel())).values[-1]
        # Tokens that tie with the k-th all stay.
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if options.top_p < 1:
        ordered, index = logits.sort(descending=True, stable=True)
        probs = ordered.softmax(dim=-1)
        beyond = probs.cumsum(dim=-1) - probs >= options.top_p
        logits = logits.index_fill(0, index[beyond], -torch.inf)
    return logits
