"""CTC decoding on a CPU beside pyctcdecode: one thread each, the same log-probabilities and beam, in turns.

    pip install pyctcdecode        # wants an old numpy: `pip install --no-deps pyctcdecode pygtrie` works too
    python ci/ctc_peer.py [--frames 500] [--vocab 32 500 5000] [--beam 4 10 32] [--rows 8] [--rounds 3]

pyctcdecode runs without a language model and with its own pruning. A best hypothesis is judged by the exact
log-probability of its tokens (torch's CTC loss in double precision). Prints one line a setting: the time a
row and its ratio (median of the rounds), the rounds' ratios, the mean log-probability of both best
hypotheses, and in how many rows ours is better, equal or worse.

`--posteriors FILE` takes (T, V) tensors saved with torch.save as a list instead of made-up ones.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time

import numpy as np
import torch
from oasr.kernels.ctc_beam import CtcSearch, decode, unpack
from torch import Tensor

FIRST_LETTER = 0x4E00  # one character a token, none of which is a space


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=500)
    parser.add_argument("--vocab", type=int, nargs="+", default=[32, 500, 5000])
    parser.add_argument("--beam", type=int, nargs="+", default=[4, 10, 32])
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--posteriors")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    sets = (
        [torch.load(args.posteriors)]
        if args.posteriors
        else [[peaky(args.frames, vocab, seed) for seed in range(args.rows)] for vocab in args.vocab]
    )
    for rows in sets:
        for beam in args.beam:
            compare(rows, beam, args.rounds)


def peaky(frames: int, vocab: int, seed: int) -> Tensor:
    """(T, V) as a trained model gives them: blanks, and a token every few frames that rises and falls."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(frames, vocab))
    logits[:, 0] += 5 + np.log(vocab)
    t = 2
    while t < frames - 1:
        for rival in rng.integers(1, vocab, size=3):
            logits[t - 1 : t + 2, rival] += (rng.uniform(3, 10) + np.log(vocab)) * np.array([0.6, 1, 0.7])
        t += int(rng.integers(3, 9))
    return torch.tensor(logits).float().log_softmax(-1)


def compare(rows: list[Tensor], beam: int, rounds: int) -> None:
    from pyctcdecode import build_ctcdecoder

    vocab = rows[0].shape[1]
    peer = build_ctcdecoder(["", *(chr(FIRST_LETTER + i) for i in range(1, vocab))])
    decode(rows[0][None], torch.tensor([len(rows[0])]), CtcSearch(beam))  # loads the extension
    walls: dict[str, list[float]] = {"oasr": [], "pyctcdecode": []}
    for _ in range(rounds):
        start = time.perf_counter()
        ours = [unpack(decode(x[None], torch.tensor([len(x)]), CtcSearch(beam)))[0][0].tokens for x in rows]
        walls["oasr"].append((time.perf_counter() - start) / len(rows))
        start = time.perf_counter()
        texts = [peer.decode(x.numpy(), beam_width=beam) for x in rows]
        walls["pyctcdecode"].append((time.perf_counter() - start) / len(rows))
    theirs = [tuple(ord(c) - FIRST_LETTER for c in text) for text in texts]
    ratios = [b / a for a, b in zip(walls["oasr"], walls["pyctcdecode"], strict=True)]
    scores = [[likelihood(x, y) for x, y in zip(rows, said, strict=True)] for said in (ours, theirs)]
    better = [np.sign(round(a - b, 6)) for a, b in zip(*scores, strict=True)]
    print(
        f"T {np.mean([len(x) for x in rows]):.0f}  V {vocab}  beam {beam}: "
        f"oasr {1000 * statistics.median(walls['oasr']):.2f} ms, "
        f"pyctcdecode {1000 * statistics.median(walls['pyctcdecode']):.1f} ms, "
        f"ratio {statistics.median(ratios):.1f} ({', '.join(f'{r:.1f}' for r in ratios)}); "
        f"log p {np.mean(scores[0]):.3f} against {np.mean(scores[1]):.3f}, "
        f"better {better.count(1)}, equal {better.count(0)}, worse {better.count(-1)} of {len(rows)}",
        flush=True,
    )


def likelihood(x: Tensor, tokens: tuple[int, ...]) -> float:
    """The log-probability of all alignments of `tokens`."""
    target = torch.tensor([tokens or (1,)])
    lengths = torch.tensor([len(x)]), torch.tensor([len(tokens)])
    return -float(torch.nn.functional.ctc_loss(x[:, None].double(), target, *lengths, reduction="sum"))


if __name__ == "__main__":
    main()
