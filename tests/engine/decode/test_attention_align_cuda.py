"""Word times on a GPU: several rows a forward give the times that each row has alone on the CPU."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers.whisper_checkpoints import generation_config, oracle, write_hf
from oasr import DecodingOptions, Engine, EngineConfig, Utterance

pytestmark = pytest.mark.gpu
RATE = 16000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_hf(oracle(seed=0), tmp_path_factory.mktemp("words"), "safetensors", generation_config()))


def run(folder, device: str, dtype: str, batch: int):
    rng = np.random.default_rng(3)
    rows = [
        Utterance(f"u{i}", samples=rng.normal(0, 0.2, 1600 + 240 * i).astype(np.float32), sample_rate=RATE)
        for i in range(20)
    ]
    with Engine(EngineConfig(folder, device, dtype, max_batch_size=batch)) as engine:
        forwards = []
        decoder = engine.model.decoder
        whole = decoder.cross_attention
        decoder.cross_attention = lambda tokens, *rest: (forwards.append(len(tokens)), whole(tokens, *rest))[
            1
        ]
        outputs = list(engine.transcribe(rows, DecodingOptions(word_timestamps=True)))
    return outputs, forwards


def test_float32_gives_the_words_of_the_cpu(folder) -> None:
    expected, alone = run(folder, "cpu", "float32", 4)
    actual, together = run(folder, "cuda", "float32", 20)
    assert set(alone) == {1} and max(together) == 16 and sum(together) == 20
    assert [o.tokens for o in actual] == [o.tokens for o in expected]
    for a, b in zip(actual, expected, strict=True):
        assert [w.word for w in a.words] == [w.word for w in b.words]
        moved = [
            abs(x - y)
            for s, t in zip(a.timestamps, b.timestamps, strict=True)
            for x, y in zip(s, t, strict=True)
        ]
        # A rounding may tip a path over to a neighbouring frame.
        assert np.mean(np.array(moved) > 1e-6) < 0.05
        assert a.confidence == pytest.approx(b.confidence, abs=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_keeps_its_promises(folder, dtype: str) -> None:
    outputs, _ = run(folder, "cuda", dtype, 8)
    for output in outputs:
        assert "".join(w.word for w in output.words) == "".join(output.text.split())
        assert all(0 <= w.start < w.end <= output.duration_s + 1e-6 for w in output.words)
        assert all(a.start <= b.start and a.end <= b.end for a, b in pairwise(output.words))
        assert all(0 <= w.confidence <= 1 for w in output.words)
        assert len(output.timestamps) == len(output.tokens[0])
