"""CTC decoding on the CPU against a naive search in double precision, and against what torch knows of CTC."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.ctc import Case, bits, random_case, same
from oasr.kernels.ctc_beam import CtcSearch, decode, gap, supports, unpack
from oasr.native import extension
from torch import Tensor

_spec = importlib.util.spec_from_file_location("kernel_reference", Path(__file__).with_name("reference.py"))
assert _spec is not None and _spec.loader is not None
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

CLOSE_CALL = 1e-4  # decisions closer than this may fall the other way in float32


def case_of(log_probs: Tensor, lengths: list[int] | None = None, **search) -> Case:
    x = log_probs if log_probs.dim() == 3 else log_probs[None]
    return Case(x, torch.tensor([x.shape[1]] * len(x) if lengths is None else lengths), CtcSearch(**search))


def check(case: Case, tolerance: float = 1e-3) -> int:
    """Compare every row with the oracle; returns how many rows a close call decided."""
    unclear = 0
    for row, length, found in zip(case.log_probs, case.lengths, case.decoded(), strict=True):
        x, s = row[:length], case.search
        if s.beam_size == 1:
            expected, margin = [reference.ctc_best_path(x, s.blank_id, s.skip_from)], math.inf
        else:
            expected, margin = reference.ctc_prefix_beam(x, s.beam_size, s.blank_id, s.skip_from)
        if margin < CLOSE_CALL:
            unclear += 1
            continue
        assert len(found) == min(len(expected), s.nbest)
        expected = expected[: s.nbest]
        scores = [h.score for h in expected]
        np.testing.assert_allclose([h.score for h in found], scores, rtol=0, atol=tolerance)
        if all(a - b > CLOSE_CALL for a, b in pairwise(scores)):
            mine = [(h.tokens, tuple(h.frames.tolist())) for h in found]
            assert mine == [(h.tokens, h.frames) for h in expected]
    return unclear


@pytest.mark.parametrize("part", range(4))
def test_random_cases(part: int) -> None:
    unclear = sum(check(random_case(seed)) for seed in range(40 * part, 40 * part + 40))
    assert unclear < 20


@pytest.mark.parametrize("part", range(8))
def test_thousands_of_small_cases(part: int) -> None:
    rng, unclear = np.random.default_rng(1000 + part), 0
    for _ in range(8):
        frames, vocab, beam = (int(rng.integers(*bounds)) for bounds in ((1, 13), (2, 14), (1, 9)))
        logits = rng.normal(scale=rng.uniform(0.3, 4), size=(48, frames, vocab))
        nbest, blank = int(rng.integers(1, beam + 1)), int(rng.integers(vocab))
        x = torch.from_numpy(logits).float().log_softmax(-1)
        lengths = rng.integers(0, frames + 1, 48).tolist()
        unclear += check(case_of(x, lengths, beam_size=beam, nbest=nbest, blank_id=blank))
    assert unclear < 0.1 * 8 * 48


@pytest.mark.parametrize(
    ("frames", "vocab", "beam", "scale"), [(3000, 6, 4, 4.0), (600, 60, 10, 3.0), (12, 9000, 32, 2.0)]
)
def test_long_and_wide(frames: int, vocab: int, beam: int, scale: float) -> None:
    x = (scale * torch.randn(1, frames, vocab)).log_softmax(-1)
    found = case_of(x, beam_size=beam, nbest=beam).decoded()[0]
    expected, _ = reference.ctc_prefix_beam(x[0], beam)
    assert found[0].score == pytest.approx(expected[0].score, abs=2e-2)  # close calls may cost a late rank
    likelihood = -F.ctc_loss(
        x.transpose(0, 1).double(), torch.tensor([found[0].tokens]), torch.tensor([frames]),
        torch.tensor([len(found[0].tokens)]), reduction="sum",
    )  # fmt: skip
    assert found[0].score <= float(likelihood) + 1e-3


def test_a_beam_that_holds_everything_gives_the_likelihood() -> None:
    x = torch.randn(6, 3).log_softmax(-1)
    found = case_of(x, beam_size=127, nbest=127).decoded()[0]
    assert len({h.tokens for h in found}) == len(found) > 30
    for one in found:
        args = torch.tensor([one.tokens or [0]]), torch.tensor([6]), torch.tensor([len(one.tokens)])
        loss = F.ctc_loss(x[:, None].double(), *args, reduction="sum")
        assert one.score == pytest.approx(-float(loss), abs=1e-5)
    assert sum(math.exp(h.score) for h in found) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_a_beam_of_one_is_the_best_path(seed: int) -> None:
    x = (2 * torch.randn(3, 50, 7)).bfloat16().float()  # ties go to the lower id
    for row, (found,) in zip(x, case_of(x, beam_size=1, blank_id=3).decoded(), strict=True):
        path = torch.tensor([int(frame.eq(frame.max()).nonzero()[0]) for frame in row])
        collapsed = path.unique_consecutive()
        assert found.tokens == tuple(collapsed[collapsed != 3].tolist())
        assert found.score == pytest.approx(float(row.double().amax(-1).sum()))


@pytest.mark.parametrize("beam", [1, 2, 10])
def test_rows_of_nothing(beam: int) -> None:
    x = torch.full((4, 3, 5), -math.inf)
    x[0, :, 0] = 0.0  # blank alone
    x[1, 0, 2] = -1.0  # then nothing is possible
    (blank,), (gone,), (nothing,), (empty,) = case_of(x, [3, 2, 3, 0], beam_size=beam).decoded()
    assert blank[:2] == ((), 0.0) and empty[:2] == ((), 0.0)
    assert gone.score == nothing.score == -math.inf
    assert nothing.tokens == ()
    for frames in (0, 3):
        found = unpack(decode(x[:, :frames], torch.zeros(4, dtype=torch.int64), CtcSearch(beam)))
        assert [row[0][:2] for row in found] == [((), 0.0)] * 4
    assert unpack(decode(x[:0], torch.zeros(0, dtype=torch.int64), CtcSearch(beam))) == []


def test_one_frame_keeps_the_empty_prefix() -> None:
    x = torch.tensor([[-9.0, -1.0, -2.0, -3.0]])
    found = case_of(x, beam_size=3, nbest=3).decoded()[0]
    assert [(h.tokens, h.score) for h in found] == [((1,), -1.0), ((2,), -2.0), ((), -9.0)]
    assert [h.tokens for h in case_of(x[:, :1], beam_size=3, nbest=3).decoded()[0]] == [()]


@pytest.mark.parametrize("blank", [0, 2, 4])
def test_ties_go_to_the_lower_index(blank: int) -> None:
    others = [i for i in range(5) if i != blank]
    tie = torch.zeros(1, 5)
    found = case_of(tie, beam_size=4, nbest=4, blank_id=blank).decoded()[0]
    assert [h.tokens for h in found] == [(others[0],), (others[1],), (others[2],), ()]
    # A second frame: staying doubles a prefix (blank and repeat) and triples one whose parent is there; then
    # all extensions are equal, and the first ones of the first slot win.
    found = case_of(tie.expand(2, 5).contiguous(), beam_size=6, nbest=6, blank_id=blank).decoded()[0]
    a, b, c, d = others
    tripled = [(a,), (b,), (c,), (d,)]
    rest = [()] if blank == 0 else []
    doubled = [(a, b), (a, c), (a, d)]
    assert [h.tokens for h in found][:4] == tripled
    assert [h.tokens for h in found][4:] == (doubled + rest)[:2]


def test_nan_counts_as_impossible_and_stays_in_its_row() -> None:
    x = torch.randn(3, 20, 9).log_softmax(-1)
    holes = x.clone()
    holes[1, ::3, 1:5] = -math.inf
    spoilt = holes.clone()
    spoilt[1, ::3, 1:3], spoilt[1, ::3, 3:5] = math.nan, math.inf
    expected, found = (case_of(y, beam_size=6, nbest=6).decoded() for y in (holes, spoilt))
    assert same(found, expected)
    assert same([found[0], found[2]], case_of(x[::2], beam_size=6, nbest=6).decoded())


@pytest.mark.parametrize("beam", [1, 8])
def test_rows_do_not_know_each_other(beam: int) -> None:
    x = torch.randn(7, 40, 12).log_softmax(-1)
    lengths = [40, 0, 1, 17, 40, 33, 2]
    together = case_of(x, lengths, beam_size=beam, nbest=beam).decoded()
    for r, n in enumerate(lengths):
        x[r, n:] = math.nan  # what lies behind a row is never read
    assert same(together, case_of(x, lengths, beam_size=beam, nbest=beam).decoded())
    for r, n in enumerate(lengths):
        assert same([together[r]], case_of(x[r, :n], beam_size=beam, nbest=beam).decoded())
    for threads in (1, 3):
        torch.set_num_threads(threads)
        assert same(together, case_of(x, lengths, beam_size=beam, nbest=beam).decoded())


def test_any_strides() -> None:
    x = torch.randn(2, 30, 16).log_softmax(-1)
    expected = case_of(x, beam_size=5, nbest=5).decoded()
    layouts = [
        x.transpose(0, 1).contiguous().transpose(0, 1),
        x.transpose(1, 2).contiguous().transpose(1, 2),
        torch.cat([x, torch.full((2, 30, 7), 9.0)], 2)[..., :16],
        torch.stack([x, x.flip(0)], 3)[..., 0],
        x.repeat_interleave(2, 1)[:, ::2],
    ]
    for y in layouts:
        assert same(case_of(y, beam_size=5, nbest=5).decoded(), expected)


def sparse_log_probs(folder: Path) -> Tensor:
    """(2, 3, 5) whose rows and frames lie more than 2^31 elements apart, in a file that is mostly holes."""
    step = 2**31 + 7
    flat = np.memmap(folder / "x", np.float32, "w+", shape=(4 * step,))
    view = torch.as_strided(torch.from_numpy(flat), (2, 3, 5), (step, step // 2, 1))
    view.copy_(torch.randn(2, 3, 5).log_softmax(-1))
    return view


def test_offsets_beyond_31_bits(tmp_path: Path, emulated_ctc) -> None:
    case = case_of(sparse_log_probs(tmp_path), beam_size=4, nbest=4)
    dense = case_of(case.log_probs.contiguous(), beam_size=4, nbest=4)
    assert same(case.decoded(), dense.decoded()) and same(emulated_ctc(case), dense.decoded())


def test_left_out_frames_add_nothing_and_stand_for_blank() -> None:
    blank, a = math.log(0.99), math.log(0.9)
    low = math.log(0.005)
    x = torch.tensor([[low, a, low], [blank, low, low], [low, a, low], [blank, low, low]])
    for beam in (1, 4):
        kept = case_of(x, beam_size=beam).decoded()[0][0]
        assert kept.tokens == (1, 1) and kept.frames.tolist() == [0, 2]
        skipped = case_of(x, beam_size=beam, blank_threshold=0.98).decoded()[0][0]
        assert skipped.tokens == (1, 1) and skipped.frames.tolist() == [0, 2]
        assert skipped.score == pytest.approx(2 * a, abs=1e-6)
        none_kept = case_of(x, beam_size=beam, blank_threshold=0.0).decoded()[0][0]
        assert none_kept[:2] == ((), 0.0)
    assert bits(case_of(x, beam_size=4, blank_threshold=2.0).decoded()) == bits(
        case_of(x, beam_size=4).decoded()
    )


@pytest.mark.parametrize("beam", [1, 3])
def test_long_texts_are_never_cut(beam: int) -> None:
    frames = 3001
    x = torch.full((frames, 4), -12.0)
    x[torch.arange(frames), torch.arange(frames) % 3 + 1] = -0.01
    found = case_of(x, beam_size=beam).decoded()[0][0]
    assert found.tokens == tuple(t % 3 + 1 for t in range(frames))
    assert found.frames.tolist() == list(range(frames))


def peaky(frames: int, vocab: int, seed: int) -> Tensor:
    """Posteriors as a trained model gives them: blanks, and tokens that rise and fall over three frames."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(frames, vocab)) * 0.5
    logits[:, 0] += 6
    t = int(rng.integers(2, 6))
    while t < frames - 1:
        token = int(rng.integers(1, vocab))
        logits[t - 1 : t + 2, token] += np.array([rng.uniform(3, 8), 13, rng.uniform(3, 6)])
        t += int(rng.integers(3, 9))
    return torch.tensor(logits).float().log_softmax(-1)


@pytest.mark.parametrize("beam", [1, 2, 4, 10, 32])
def test_emission_frames_are_those_of_forced_alignment(beam: int) -> None:
    from torchaudio.functional import forced_align

    away = []
    for seed in range(12):
        x = peaky(160, 30, seed)
        found = case_of(x, beam_size=beam).decoded()[0][0]
        path = forced_align(x[None], torch.tensor([found.tokens]))[0][0]
        starts = [t for t in range(160) if path[t] != 0 and (t == 0 or path[t] != path[t - 1])]
        assert len(starts) == len(found.tokens) > 15
        away += (found.frames - np.array(starts)).tolist()
    assert set(away) <= {-1, 0} and away.count(0) > 0.95 * len(away)


def test_posteriors_are_the_larger_of_two_frames() -> None:
    x = peaky(80, 12, 1)
    found = case_of(x, [70], beam_size=5, nbest=3).decoded()[0]
    for one in found:
        pairs = zip(one.tokens, one.frames.tolist(), strict=True)
        assert one.log_probs.tolist() == [float(x[t : min(t + 2, 70), c].max()) for c, t in pairs]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"beam_size": 0}, "beam_size"),
        ({"nbest": 0}, "nbest"),
        ({"nbest": 4}, "nbest"),
        ({"blank_id": 6}, "blank_id"),
        ({"blank_id": -1}, "blank_id"),
        ({"beam_size": 2**31}, "beam_size"),
    ],
)
def test_a_search_that_does_not_fit_is_named(change: dict[str, int], word: str) -> None:
    x, lengths = torch.zeros(2, 4, 6), torch.tensor([4, 4])
    search = CtcSearch(beam_size=3, nbest=2)
    decode(x, lengths, search)
    with pytest.raises(ValueError, match=word):
        decode(x, lengths, replace(search, **change))
    native = extension().ctc
    values = {"beam_size": 3, "blank_id": 0, "skip_from": 0.0, "nbest": 2} | change
    if values["beam_size"] < 2**31:
        with pytest.raises(ValueError, match=word):
            native.decode(
                x.data_ptr(), (2, 4, 6), (24, 6), lengths.data_ptr(), native.Search(**values), x.data_ptr()
            )


def test_tensors_that_do_not_fit_are_named() -> None:
    x, lengths, search = torch.zeros(2, 4, 6), torch.tensor([4, 4]), CtcSearch()
    for bad in (x.double(), x[0], x.half()):
        with pytest.raises(ValueError, match="log_probs: expected float32"):
            decode(bad, lengths, search)
    for bad in (lengths.int(), lengths[:1], lengths + 1, lengths - 5):
        with pytest.raises(ValueError, match="lengths: expected"):
            decode(x, bad, search)
    assert not supports(x, search)


def test_what_the_kernel_cannot_serve_is_said() -> None:
    x = torch.zeros(1, 4, 6)
    assert "beam over 32" in (gap(x, CtcSearch(beam_size=33)) or "")
    assert "indices" in (gap(x.expand(2**30, 4, 6), CtcSearch()) or "")
    assert "no kernels on this device" in (gap(x, CtcSearch()) or "")
