"""Word times from cross-attention, against transformers' attention and numpy."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.whisper_checkpoints import IDS, generation_config, oracle, write_hf
from oasr import DecodingOptions, Engine, EngineConfig, Utterance
from oasr.decode import silence
from oasr.decode.attention_align import median7, path_scores
from oasr.native import extension

RATE = 16000
SOT = IDS["<|startoftranscript|>"]


@pytest.fixture(scope="module")
def reference():
    return oracle(seed=0)


@pytest.fixture(scope="module")
def folder(reference, tmp_path_factory):
    return str(write_hf(reference, tmp_path_factory.mktemp("words"), "safetensors", generation_config()))


def engine(folder, **config):
    return Engine(EngineConfig(**{"model": folder, "device": "cpu", "dtype": "float32", **config}))


def noise(seed: int, seconds: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.2, round(RATE * seconds)).astype(np.float32)


def rows(count: int = 9) -> list[Utterance]:
    """Clips within the tiny model's window of 0.4 s."""
    clips = [noise(i, 0.1 + 0.03 * i) for i in range(count)]
    return [Utterance(f"u{i}", samples=clip, sample_rate=RATE) for i, clip in enumerate(clips)]


WORDS = DecodingOptions(word_timestamps=True)


def test_the_median_network_sorts_every_zero_one_input() -> None:
    """A network that is right for all 0/1 inputs is right for all (Knuth's principle)."""
    values = torch.tensor(list(itertools.product([0.0, 1.0], repeat=7)))
    assert torch.equal(median7(values[None], torch.tensor([7]))[0, :, 3], values.median(1).values)


def scores_of(weights: np.ndarray) -> np.ndarray:
    """(heads, tokens, frames) → (tokens, frames), as openai-whisper states it, for at least 4 frames."""
    centred = weights - weights.mean(1, keepdims=True)
    scaled = centred / np.maximum(weights.std(1, keepdims=True), 1e-9)
    mirrored = np.pad(scaled, ((0, 0), (0, 0), (3, 3)), mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(mirrored, 7, axis=-1), axis=-1).mean(0)


@pytest.mark.parametrize("heads", [1, 3, 37])
def test_path_scores_equal_numpy_in_rows_of_different_sizes(heads: int) -> None:
    sizes = [(6, 30), (9, 41), (2, 4), (9, 7)]
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.ones(f), size=(heads, t)).astype(np.float32) for t, f in sizes]
    batch = torch.full((4, heads, 9, 41), 7.5)  # what stands in the padding must not matter
    for own, row in zip(batch, rows, strict=True):
        own[:, : row.shape[1], : row.shape[2]] = torch.from_numpy(row)
    tokens, frames = torch.tensor(sizes).unbind(1)
    got = path_scores(batch, tokens, frames)
    for scores, row, (t, f) in zip(got, rows, sizes, strict=True):
        np.testing.assert_allclose(scores[:t, :f], scores_of(row), atol=1e-5)
        alone = path_scores(torch.from_numpy(row)[None], torch.tensor([t]), torch.tensor([f]))[0]
        torch.testing.assert_close(scores[:t, :f], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_few_frames_are_enough(frames: int) -> None:
    weights = torch.rand(1, 2, 5, frames, generator=torch.Generator().manual_seed(0))
    assert torch.isfinite(path_scores(weights, torch.tensor([5]), torch.tensor([frames]))).all()
    flat = path_scores(torch.full((1, 2, 5, frames), 0.25), torch.tensor([5]), torch.tensor([frames]))
    assert (flat == 0).all()  # no deviation at all


def expected_times(reference, model, row: Utterance, output) -> list[tuple[float, float]]:
    """Token times by transformers' cross-attention, with the rules stated in numpy."""
    tokens = output.tokens[0]
    prompt = model.prompt_tokens(DecodingOptions(), output.language)
    window = model.frontend.window_samples(len(row.samples))
    padded = torch.zeros(1, window)
    padded[0, : len(row.samples)] = torch.from_numpy(row.samples)
    mel = model.frontend(padded, torch.tensor([len(row.samples)]))[0].transpose(1, 2)
    ids = torch.tensor([[*prompt, *tokens, model.eos_id]])[:, :24]
    with torch.inference_mode():
        attention = reference(mel, decoder_input_ids=ids, output_attentions=True).cross_attentions
    frames = math.ceil(len(row.samples) / 320)
    heads = torch.stack([attention[layer][0, head] for layer, head in model.alignment_heads])
    first = len(prompt) - 1
    matrix = scores_of(heads[..., :frames].numpy())[first : first + len(tokens) + 1]
    spans = extension().alignment.warp(matrix)[:-1]
    loud = silence.loud_frames(row.samples, 320, frames)
    spans = silence.rest_marks(silence.stop_at_pauses(spans, loud), model.tokenizer.token_pieces(tokens))
    whole = max(1, len(row.samples) // 320)
    times, a, b = [], 0, 0
    for start, end in spans.tolist():
        a, b = min(max(a, start), whole - 1), min(max(b, end, min(max(a, start), whole - 1) + 1), whole)
        times.append((a * 0.02, len(row.samples) / RATE if b == whole else b * 0.02))
    return times


@pytest.mark.parametrize("batch", [1, 4])
def test_token_times_equal_those_of_transformers_attention(reference, folder, batch: int) -> None:
    with engine(folder, max_batch_size=batch) as ours:
        outputs = list(ours.transcribe(rows(), WORDS))
        timed = 0
        for row, output in zip(rows(), outputs, strict=True):
            expected = expected_times(reference, ours.model, row, output)
            assert output.timestamps == tuple(pytest.approx(span) for span in expected)
            timed += len(expected)
    assert timed > 40


def test_asking_for_words_changes_nothing_else_and_costs_nobody_else(folder, monkeypatch) -> None:
    with engine(folder, max_batch_size=4) as ours:
        plain = list(ours.transcribe(rows()))
        calls: list[tuple[int, ...]] = []
        whole = ours.model.decoder.cross_attention
        monkeypatch.setattr(
            ours.model.decoder, "cross_attention",
            lambda tokens, *rest: (calls.append(tuple(tokens.shape)), whole(tokens, *rest))[1],
        )  # fmt: skip
        timed = list(ours.transcribe(rows(), WORDS))
        assert len(calls) == len(rows()) and all(shape[0] == 1 for shape in calls)
        again = list(ours.transcribe(rows()))
        assert len(calls) == len(rows())
    for a, b, c in zip(plain, timed, again, strict=True):
        same = [(o.text, o.tokens, o.scores, o.confidence, o.finish_reason) for o in (a, b, c)]
        assert same[0] == same[1] == same[2]
        assert a.words is None and a.timestamps is None and c.words is None
        assert b.words is not None and len(b.timestamps) == len(b.tokens[0])


def test_rows_of_one_batch_may_differ_in_what_they_ask(folder) -> None:
    with engine(folder, max_batch_size=4) as ours:
        for i, row in enumerate(rows()):
            ours.add_request(row, WORDS if i % 2 else None)
        outputs = {output.request_id: output for output in ours.run()}
    assert [outputs[f"u{i}"].words is not None for i in range(9)] == [i % 2 == 1 for i in range(9)]


def test_words_are_those_of_a_row_alone_in_any_batch_and_order(folder) -> None:
    def words(listed, **config):
        with engine(folder, **config) as ours:
            return {o.request_id: o for o in ours.transcribe(listed, WORDS)}

    alone = words(rows(), max_batch_size=1)
    for others in (
        words(rows(), max_batch_size=7),
        words(rows()[::-1], max_batch_size=3, decode_options={"merge_groups": False}),
    ):
        for key, output in alone.items():
            assert others[key].timestamps == output.timestamps
            for a, b in zip(others[key].words, output.words, strict=True):
                # float32 sums of a batch round as they like; int16 does not (test_word_timings).
                assert a == replace(b, confidence=pytest.approx(b.confidence, abs=1e-5))


def test_a_prompt_is_no_part_of_what_was_said(folder) -> None:
    """A text from before has no place in the audio; the times do not hang on it."""
    with engine(folder) as ours:
        options = DecodingOptions(word_timestamps=True, prompt="earlier", max_new_tokens=5)
        (output,) = ours.transcribe(rows()[8:], options)
    assert len(output.timestamps) == len(output.tokens[0]) == 5


def test_a_full_context_is_timed(folder) -> None:
    """24 positions: prompt and text fill them, and the end token finds no room."""
    with engine(folder) as ours:
        (output,) = ours.transcribe(rows()[8:], DecodingOptions(word_timestamps=True, language="en"))
        assert output.finish_reason == "length" and len(output.timestamps) == 20


def test_no_tokens_mean_no_words(folder) -> None:
    silent = [Utterance("s", samples=np.zeros(5000, np.float32), sample_rate=RATE)]
    with engine(folder) as ours:
        (output,) = ours.transcribe(silent, WORDS)
        assert (output.text, output.words, output.timestamps, output.confidence) == ("", (), (), None)
        (output,) = ours.transcribe(silent)
        assert output.words is None


def test_rows_wait_for_each_other_up_to_a_forward(folder) -> None:
    """What a GPU does: several rows a forward, padded on the right; none is lost, times stay the same."""
    with engine(folder, max_batch_size=8) as ours:
        alone = list(ours.transcribe(rows(), WORDS))
        for at_once in (2, 4, 100):
            ours.strategy.aligner.rows_at_once = at_once
            together = list(ours.transcribe(rows(), WORDS))
            assert [o.text for o in together] == [o.text for o in alone]
            for a, b in zip(alone, together, strict=True):
                assert [w.word for w in a.words] == [w.word for w in b.words]
                assert b.timestamps == tuple(pytest.approx(span) for span in a.timestamps)


def test_waiting_rows_hold_their_slots_and_come_back_from_an_abort(folder) -> None:
    with engine(folder, max_batch_size=8, decode_steps_per_tick=1) as ours:
        strategy = ours.strategy
        strategy.aligner.rows_at_once = 3
        for i, row in enumerate(rows(4)):
            ours.add_request(row, DecodingOptions(word_timestamps=True, max_new_tokens=3 + i))
        while len(strategy._untimed) < 2:
            assert ours.step() == []
        assert strategy.pending_rows() == 4
        while not (done := ours.step()):
            assert strategy.has_pending()
        assert sorted(o.request_id for o in done) == ["u0", "u1", "u2"] and strategy.pending_rows() == 1
        (last,) = ours.run()  # nothing else decodes, so the last row does not wait for company
        assert last.request_id == "u3" and last.words is not None
        ours.add_request(rows()[0], DecodingOptions(word_timestamps=True, max_new_tokens=2))
        ours.add_request(rows()[1], DecodingOptions(word_timestamps=True, max_new_tokens=9))
        while not strategy._untimed:
            ours.step()
        assert sorted(request.id for request in strategy.abort()) == ["u0", "u1"]
        assert not strategy.has_pending()


def test_a_row_that_cannot_be_timed_fails_alone(folder, monkeypatch) -> None:
    with engine(folder, max_batch_size=4) as ours:
        pieces = ours.model.tokenizer.token_pieces
        texts = [o.tokens[0] for o in ours.transcribe(rows())]
        text = texts[2]
        assert texts.count(text) == 1

        def token_pieces(ids):
            if tuple(ids) == text:
                raise RuntimeError("broken on purpose")
            return pieces(ids)

        monkeypatch.setattr(ours.model.tokenizer, "token_pieces", token_pieces)
        outputs = list(ours.transcribe(rows(), WORDS))
    assert [o.ok for o in outputs] == [i != 2 for i in range(9)]
    assert "broken on purpose" in outputs[2].error_message
    assert all(o.words is not None for o in outputs if o.ok)


def test_without_published_heads_the_upper_half_is_used(reference, tmp_path) -> None:
    for name, config in (
        ("none", generation_config(alignment_heads=...)),
        ("teacher", generation_config(alignment_heads=[[0, 1], [7, 0]])),  # of a model with more layers
    ):
        path = str(write_hf(reference, tmp_path / name, "safetensors", config))
        with engine(path) as ours:
            # Three layers of four heads: the upper half begins in the second one.
            assert ours.model.alignment_heads == tuple((i, j) for i in (1, 2) for j in range(4))
            (output,) = ours.transcribe(rows()[8:], WORDS)
            assert output.words


def test_a_decoder_that_does_not_tell_or_a_model_without_geometry_refuses(folder, monkeypatch) -> None:
    with engine(folder) as ours:
        monkeypatch.setattr(ours.model, "subsampling_rate", None)
        (output,) = ours.transcribe(rows()[:1], WORDS)
        assert output.error_stage == "admission" and "length of an encoder frame" in output.error_message
        monkeypatch.delattr(type(ours.model.decoder), "cross_attention")
        (output,) = ours.transcribe(rows()[:1], WORDS)
        assert "modes that work: none" in output.error_message
        (output,) = ours.transcribe(rows()[:1])
        assert output.ok
