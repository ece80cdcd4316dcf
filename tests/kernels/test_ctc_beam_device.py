"""The CTC kernel: emulated on the CPU, compiled for every architecture, and run where there is a GPU."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from helpers.ctc import Case, random_case, same
from oasr.decode.pending import Readback
from oasr.kernels import ctc_beam, jit
from oasr.kernels.ctc_beam import CtcSearch, decode, unpack
from oasr.kernels.fused import fused_stats

needs_nvrtc = pytest.mark.skipif(not jit.available(), reason="needs cuda-core (pip install '.[cuda]')")


@pytest.mark.parametrize("part", range(4))
def test_the_emulated_kernel_gives_the_bits_of_the_cpu(emulated_ctc, part: int) -> None:
    for seed in range(1000 + 60 * part, 1060 + 60 * part):
        case = random_case(seed)
        assert same(emulated_ctc(case, order=seed % 3), case.decoded()), seed


@pytest.mark.parametrize("beam", [1, 2, 7, 32])
@pytest.mark.parametrize("kind", ["uniform", "falling", "rising", "blocks", "lowest"])
def test_the_emulated_kernel_on_hard_orders(emulated_ctc, beam: int, kind: str) -> None:
    """Values that fill the finder's queue, tie everywhere, or lie at the end of the floats."""
    vocab = 700
    ramp = torch.arange(vocab, dtype=torch.float32)
    frame = {
        "uniform": torch.full((vocab,), -math.log(vocab)),
        "falling": -ramp / 50 - 1,
        "rising": ramp / 50 - 20,
        "blocks": (ramp // 100) / 7 - 9,
        "lowest": torch.where(ramp % 3 == 0, torch.finfo(torch.float32).min, -math.inf),
    }[kind]
    case = Case(frame.expand(1, 6, vocab), torch.tensor([6]), CtcSearch(beam, 350, nbest=beam))
    for order in range(3):
        assert same(emulated_ctc(case, order), case.decoded())


def test_the_emulated_kernel_on_a_long_row(emulated_ctc) -> None:
    x = (3 * torch.randn(2, 3000, 40)).log_softmax(-1)
    x[:, 50:150, 0] = 0.0
    case = Case(x, torch.tensor([3000, 2990]), CtcSearch(5, nbest=5, blank_threshold=0.9))
    assert same(emulated_ctc(case), case.decoded())


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_every_architecture_compiles(arch: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path))
    code = ctc_beam.device_code(10)
    machine_code = jit.compiled(code, arch)
    assert machine_code[:4] == b"\x7fELF" and code.entry.encode() in machine_code


@needs_nvrtc
def test_every_width_of_the_beam_compiles(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path))
    sizes = {len(jit.compiled(ctc_beam.device_code(beam), "sm_90")) for beam in (1, 32)}
    assert len(sizes) == 2


gpu = pytest.mark.gpu


def on_gpu(case: Case) -> Case:
    return replace(case, log_probs=case.log_probs.cuda())


@gpu
@pytest.mark.parametrize("part", range(4))
def test_the_gpu_gives_the_bits_of_the_cpu(part: int) -> None:
    before = fused_stats["ctc_beam"]
    for seed in range(2000 + 75 * part, 2075 + 75 * part):
        case = random_case(seed)
        assert same(on_gpu(case).decoded(), case.decoded()), seed
    assert fused_stats["ctc_beam"] > before + 60


@gpu
@pytest.mark.parametrize("beam", [1, 4, 10, 32])
def test_a_batch_on_the_gpu(beam: int) -> None:
    x = (2 * torch.randn(40, 300, 1000)).log_softmax(-1)
    x[..., 0] += 3
    lengths = torch.randint(0, 301, (40,))
    case = Case(x, lengths, CtcSearch(beam, nbest=beam))
    expected = case.decoded()
    first = on_gpu(case).decoded()
    assert same(first, expected) and same(on_gpu(case).decoded(), first)
    strided = x.transpose(0, 1).contiguous().cuda().transpose(0, 1)
    assert same(unpack(decode(strided, lengths, case.search).cpu()), expected)


@gpu
def test_more_rows_than_blocks_are_resident() -> None:
    x = torch.randn(3000, 20, 30).log_softmax(-1)
    case = Case(x, torch.full((3000,), 20), CtcSearch(3))
    assert same(on_gpu(case).decoded(), case.decoded())


@gpu
def test_offsets_beyond_31_bits_on_the_gpu() -> None:
    rows, frames, vocab = 3, 1_200_000, 1000
    x = torch.empty(rows, frames, vocab, device="cuda")
    x[:, :50] = torch.randn(rows, 50, vocab, device="cuda").log_softmax(-1)
    x[2, -30:] = x[2, :30]
    lengths = torch.tensor([50, 0, 30])
    found = unpack(decode(x, lengths, CtcSearch(6, nbest=6)).cpu())
    assert same(found, Case(x[:, :50].cpu(), lengths, CtcSearch(6, nbest=6)).decoded())
    tail = torch.as_strided(
        x, (2, 30, vocab), (frames * vocab, vocab, 1), (frames - 30) * vocab + frames * vocab
    )
    found = unpack(decode(tail, torch.tensor([0, 30]), CtcSearch(6, nbest=6)).cpu())
    assert same(found[1:], Case(x[2:, :30].cpu(), torch.tensor([30]), CtcSearch(6, nbest=6)).decoded())


@gpu
def test_the_launch_is_queued_on_the_current_stream() -> None:
    x = (2 * torch.randn(4, 200, 500)).log_softmax(-1)
    lengths = torch.full((4,), 200)
    expected = Case(x, lengths, CtcSearch(8)).decoded()
    decode(x.cuda(), lengths, CtcSearch(8))
    source = x.cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = torch.zeros_like(source)
        torch.cuda._sleep(20_000_000)
        late.copy_(source)
        readback = Readback([decode(late, lengths, CtcSearch(8))])
        late.zero_()  # queued behind the search
        assert not stream.query()  # nobody has waited so far
    assert same(unpack(readback.wait()[0]), expected)


@gpu
def test_what_the_kernel_cannot_serve_is_counted_and_done() -> None:
    case = Case(torch.randn(2, 30, 50).log_softmax(-1), torch.tensor([30, 4]), CtcSearch(40, nbest=3))
    before = fused_stats["ctc_beam: a beam over 32"]
    assert same(on_gpu(case).decoded(), case.decoded())
    assert fused_stats["ctc_beam: a beam over 32"] == before + 1
