"""The engine in int16: the same bits for a row whatever shares its batch, and the tokens of float32."""

import json
import random
from dataclasses import replace

import pytest
import torch
from helpers.whisper_checkpoints import generation_config, oracle, write_hf
from oasr import Engine, EngineConfig, Utterance
from oasr.audio.waveform import read_waveforms
from oasr.errors import OptionsError
from oasr.kernels import fixed16

pytestmark = pytest.mark.skipif(not fixed16.supports("cpu"), reason="int16 kernels need x86-64 with AVX2")


@pytest.fixture(scope="module")
def rows(demo_manifest):
    listed = [json.loads(line) for line in demo_manifest.read_text().splitlines()]
    rows = [Utterance(r["id"], str(demo_manifest.parent / r["audio"])) for r in listed]
    # Cut each recording in two as well, so that lengths differ widely.
    halves = []
    for row in rows[:4]:
        samples = read_waveforms(row, 16000)[0][1].samples
        halves.append(Utterance(row.id + "-b", samples=samples[len(samples) // 2 :], sample_rate=16000))
    return rows + halves


def run(rows, model="tiny.en", **config):
    with Engine(EngineConfig(**{"model": model, "device": "cpu", "dtype": "int16", **config})) as engine:
        outputs = list(engine.transcribe(rows))
    return {o.request_id: (o.text, o.tokens, o.scores, o.confidence, o.finish_reason) for o in outputs}


@pytest.mark.weights
@pytest.mark.parametrize("window", ["full", "auto"])
def test_every_bit_of_a_row_is_its_own(rows, window):
    options = {"decode_options": {"window": window}}
    alone = run(rows, max_batch_size=1, **options)
    assert run(rows, max_batch_size=7, **options) == alone
    shuffled = random.Random(3).sample(rows, len(rows))
    assert run(shuffled, max_batch_size=5, decode_options={"window": window, "merge_groups": False}) == alone


@pytest.mark.weights
def test_prompts_of_neighbours_change_no_bit(rows):
    words = (0, 3, 7, 16, 0, 5, 12)
    prompted = [
        replace(row, prompt=" ".join(["Birmingham"] * n)) for row, n in zip(rows[:7], words, strict=True)
    ]
    alone = run(prompted, max_batch_size=1)
    assert run(prompted, max_batch_size=7) == alone
    assert run(prompted[::-1], max_batch_size=3) == alone


@pytest.mark.weights
def test_tokens_are_those_of_float32(rows):
    exact = run(rows, dtype="float32")
    fixed = run(rows)
    assert {k: v[1] for k, v in fixed.items()} == {k: v[1] for k, v in exact.items()}
    for key, (_, _, scores, confidence, _) in fixed.items():
        assert scores[0] == pytest.approx(exact[key][2][0], abs=0.05)
        assert confidence == pytest.approx(exact[key][3], abs=0.01)


@pytest.mark.weights
def test_auto_takes_int16(tiny_en):
    with Engine(EngineConfig(model=tiny_en, device="cpu")) as engine:
        assert engine.dtype == "int16"
        # Which this checkpoint stores; the head computes on a packed copy.
        assert engine.model.decoder.tokens.weight.dtype == torch.float16


def test_a_checkpoint_with_other_heads_keeps_float32_under_auto_and_refuses_int16(tmp_path):
    folder = str(write_hf(oracle(seed=1), tmp_path / "m", "safetensors", generation_config()))
    with Engine(EngineConfig(model=folder, device="cpu")) as engine:
        assert engine.dtype == "float32"
    with pytest.raises(OptionsError, match="int16"):
        Engine(EngineConfig(model=folder, device="cpu", dtype="int16"))
