"""The engine on a GPU: same numbers as the CPU, and the parts that only exist there."""

import json

import numpy as np
import pytest
import torch
from helpers.fake_models import FakeModel, request
from oasr import Engine, EngineConfig, Utterance
from oasr.decode.pending import PendingReadback, Readback
from oasr.executor.batching import MicroBatch
from oasr.executor.collate import Collator

pytestmark = pytest.mark.gpu


@pytest.fixture
def demo(demo_manifest):
    rows = [json.loads(line) for line in demo_manifest.read_text().splitlines()]
    return [Utterance(r["id"], str(demo_manifest.parent / r["audio"])) for r in rows]


def texts(engine, rows):
    with engine:
        return [o.text for o in engine.transcribe(rows)]


def test_float32_gives_the_texts_of_the_cpu(tiny_en, demo):
    cpu = texts(Engine(EngineConfig(model=tiny_en, device="cpu", dtype="float32")), demo)
    for batch in (1, 7, 64):
        gpu = EngineConfig(model=tiny_en, device="cuda", dtype="float32", max_batch_size=batch)
        assert texts(Engine(gpu), demo) == cpu


def test_encoder_output_is_the_cpus(tiny_en):
    torch.manual_seed(0)
    samples, lengths = torch.randn(2, 480000) * 0.1, torch.tensor([480000, 100000])
    hidden = []
    for device in ("cpu", "cuda"):
        model = Engine(EngineConfig(model=tiny_en, device=device, dtype="float32")).model
        with torch.inference_mode():
            features, frames = model.frontend(samples.to(device), lengths.to(device))
            hidden.append(model.encode_offline(features, frames).hidden.cpu())
    torch.testing.assert_close(hidden[0], hidden[1], atol=2e-3, rtol=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_transcribes(tiny_en, demo, dtype):
    cpu = texts(Engine(EngineConfig(model=tiny_en, device="cpu", dtype="float32")), demo)
    gpu = texts(Engine(EngineConfig(model=tiny_en, device="cuda", dtype=dtype)), demo)
    words = [(a.split(), b.split()) for a, b in zip(cpu, gpu, strict=True)]
    same = sum(x == y for a, b in words for x, y in zip(a, b, strict=False))
    assert same / sum(len(a) for a, _ in words) > 0.9


def test_auto_takes_the_gpu_in_half_precision(tiny_en):
    engine = Engine(EngineConfig(model=tiny_en))
    assert (engine.device.type, engine.dtype) == ("cuda", "float16")


def test_readback_is_ordered_behind_the_work_that_fills_it_and_before_what_overwrites_it():
    x = torch.zeros(1 << 20, device="cuda")
    a = torch.randn(4096, 4096, device="cuda")
    for _ in range(20):
        a = torch.tanh(a @ a)  # keeps the stream busy while the copy is queued
    x += 7
    pending = PendingReadback([x], lambda tensors: [float(tensors[0].min()), float(tensors[0].max())])
    x.zero_()
    assert pending.collect() == [7.0, 7.0]


def test_readback_lands_in_pinned_memory():
    (host,) = Readback([torch.arange(5, device="cuda")]).wait()
    assert host.is_pinned() and host.tolist() == [0, 1, 2, 3, 4]


def test_collated_batches_wait_for_their_copies():
    collator = Collator(torch.device("cuda", 0))
    requests = [request(n, 100_000) for n in (1, 2, 3, 4)]
    futures = [collator.submit(MicroBatch(tuple(requests), 400_000)) for _ in range(8)]
    for future in futures:
        collated = future.result()
        sums = (collated.take() * 1000).round().sum(1) / 100_000
        assert sums.tolist() == pytest.approx([1, 2, 3, 4], rel=1e-4)
        assert collated.lengths.tolist() == [100_000] * 4
    collator.close()


def test_real_out_of_memory_is_split_until_it_fits(tiny_en):
    engine = Engine(EngineConfig(model=tiny_en, device="cuda", dtype="float32", max_batch_size=64))
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    noise = np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32)
    reference = texts(
        Engine(EngineConfig(model=tiny_en, device="cuda", dtype="float32")), [(noise, 16000)] * 2
    )
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 900 * 2**20) / total)
    try:
        outputs = list(engine.transcribe([(noise, 16000)] * 64))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert engine.executor.counters.oom_splits >= 1
    assert [o.error_message for o in outputs] == [None] * 64
    assert {o.text for o in outputs} == set(reference)


def test_the_fake_families_run_on_the_gpu_stream():
    from helpers.fake_models import FakeCtc
    from oasr.decode.strategy import NoOptions
    from oasr.executor.offline import OfflineExecutor

    config = EngineConfig(max_batch_size=4)
    model = FakeModel().cuda()
    executor = OfflineExecutor(model, FakeCtc(model, NoOptions(), config), config)
    for n in range(1, 41):
        executor.add(request(n))
    outcomes = []
    while executor.has_work:
        outcomes += executor.step()
    executor.close()
    assert sorted(o.hypotheses[0].tokens[0] for o in outcomes) == list(range(1, 41))
