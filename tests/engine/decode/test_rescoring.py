"""Rescoring against WeNet's, against a loop over single hypotheses, and across batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.wenet_checkpoints import NAMES, golden, write_wenet
from oasr.checkpoints import load_model
from oasr.config import EngineConfig
from oasr.decode import rescoring
from oasr.decode.rescoring import RescoringOptions
from oasr.decode.strategy import build_decode_strategy
from oasr.errors import DecodeError, OptionsError, RequestError
from oasr.kernels.ctc_beam import CtcHypothesis
from oasr.models.interfaces import EncoderOutput
from oasr.types import DecodingOptions, Request

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model_of(tmp_path_factory: pytest.TempPathFactory):
    root, loaded = tmp_path_factory.mktemp("wenet"), {}

    def load(name: str):
        if name not in loaded:
            loaded[name] = load_model(str(write_wenet(root / name, name)), CPU, "float32")
        return loaded[name]

    return load


def strategy_of(model, **options):
    config = EngineConfig(decode_method="ctc_aed_rescoring", decode_options=options)
    return build_decode_strategy(model, config)


def encode(model, name: str, rows=(0, 1, 2)) -> EncoderOutput:
    case = golden(name)
    batch = torch.zeros(len(rows), max(case.frames[row] for row in rows), 16)
    for place, row in enumerate(rows):
        features = case.features(row)
        batch[place, : len(features)] = model.config.cmvn(features) if model.config.cmvn else features
    with torch.inference_mode():
        out = model.encode_offline(batch, torch.tensor([case.frames[row] for row in rows]))
        return EncoderOutput(out.lengths, out.hidden, model.frame_log_probs(out))


def requests(count: int, n_best: int = 1, **options) -> list[Request]:
    audio = np.zeros(32000, np.float32)
    decoding = DecodingOptions(n_best=n_best, **options)
    return [Request(f"u{i}", audio, 16000, decoding, key=i) for i in range(count)]


def first_pass(monkeypatch: pytest.MonkeyPatch, nbests: list[tuple[CtcHypothesis, ...]]) -> None:
    """Let the second pass see these n-bests, whatever the log-probabilities say."""
    monkeypatch.setattr(rescoring, "decode", lambda *_: torch.zeros(1))
    monkeypatch.setattr(rescoring, "unpack", lambda _: nbests)


def hypotheses(case: dict) -> tuple[CtcHypothesis, ...]:
    return tuple(
        CtcHypothesis(tuple(tokens), score, np.array(times, np.int32), np.zeros(len(times), np.float32))
        for tokens, score, times in zip(case["nbest"], case["ctc"], case["times"], strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_the_same_n_best_gets_wenets_order(model_of, monkeypatch, name: str) -> None:
    model, case = model_of(name), golden(name)
    out = encode(model, name)
    first_pass(monkeypatch, [hypotheses(row) for row in case.cases])
    for number in range(len(case.cases[0]["fused"])):
        wanted = [row["fused"][number] for row in case.cases]
        options = {key: wanted[0][key] for key in ("ctc_weight", "reverse_weight")}
        found = strategy_of(model, beam_size=4, **options).decode_offline(out, requests(3, n_best=4))
        for nbest, row, expected in zip(found, case.cases, wanted, strict=True):
            assert nbest[0].tokens == tuple(expected["best"])
            assert nbest[0].score == pytest.approx(expected["score"], abs=2e-3)
            order = sorted(range(4), key=lambda i, e=expected: -e["each"][i])
            assert [h.tokens for h in nbest] == [tuple(row["nbest"][i]) for i in order]


def by_hand(model, hidden: torch.Tensor, tokens: tuple[int, ...], reverse: bool) -> float:
    """Σ log p of one hypothesis and its end, one decoder forward, no padding."""
    decoder = model.decoder.right if reverse else model.decoder.left
    labels = list(tokens[::-1] if reverse else tokens)
    memory = model.decoder.memory(hidden[None], torch.tensor([len(hidden)]))
    states = decoder(torch.tensor([[2, *labels]]), memory)[0]
    log_probs = decoder.output(states).double().log_softmax(-1)
    return sum(float(log_probs[i, label]) for i, label in enumerate([*labels, 2]))


@torch.inference_mode()
def test_own_first_pass_equals_a_loop_over_hypotheses(model_of) -> None:
    model = model_of("u2pp")
    out = encode(model, "u2pp")
    ctc = build_decode_strategy(
        model, EngineConfig(decode_method="ctc_cuda", decode_options={"beam_size": 6, "nbest": 6})
    ).decode_offline(EncoderOutput(out.lengths, log_probs=out.log_probs), requests(3))
    found = strategy_of(model, beam_size=6).decode_offline(out, requests(3, n_best=6))
    for row, (nbest, candidates) in enumerate(zip(found, ctc, strict=True)):
        hidden = out.hidden[row, : int(out.lengths[row])]
        wanted = {}
        for one in candidates:
            left, right = (by_hand(model, hidden, one.tokens, reverse) for reverse in (False, True))
            wanted[one.tokens] = 0.7 * left + 0.3 * right + 0.5 * one.score
        assert [h.tokens for h in nbest] == sorted(wanted, key=wanted.__getitem__, reverse=True)
        for one in nbest:
            assert one.score == pytest.approx(wanted[one.tokens], abs=1e-3)
            confidence = next(c.confidence for c in candidates if c.tokens == one.tokens)
            assert one.confidence == confidence


@torch.inference_mode()
def test_a_row_does_not_depend_on_its_batch(model_of, monkeypatch) -> None:
    model = model_of("u2pp")
    strategy = strategy_of(model, beam_size=5)
    together = strategy.decode_offline(encode(model, "u2pp"), requests(3, n_best=5))
    turned = strategy.decode_offline(encode(model, "u2pp", (2, 0, 1)), requests(3, n_best=5))
    monkeypatch.setattr(rescoring, "_TOKENS_AT_ONCE", 1)
    in_parts = strategy.decode_offline(encode(model, "u2pp"), requests(3, n_best=5))
    for row in range(3):
        alone = strategy.decode_offline(encode(model, "u2pp", (row,)), requests(1, n_best=5))[0]
        for other in (alone, turned[(row + 1) % 3], in_parts[row]):
            assert [h.tokens for h in other] == [h.tokens for h in together[row]]
            assert [h.score for h in other] == pytest.approx([h.score for h in together[row]], abs=1e-3)


@torch.inference_mode()
def test_word_times_are_those_of_the_winner(model_of, monkeypatch) -> None:
    model, case = model_of("u2pp"), golden("u2pp")
    first_pass(monkeypatch, [hypotheses(row) for row in case.cases])
    found = strategy_of(model, beam_size=4).decode_offline(
        encode(model, "u2pp"), requests(3, n_best=2, word_timestamps=True)
    )
    for nbest, row in zip(found, case.cases, strict=True):
        times = row["times"][row["nbest"].index(list(nbest[0].tokens))]
        assert [round(end / 0.04) for _, end in nbest[0].timestamps] == [t + 1 for t in times]
        assert nbest[1].words is None


def plain(tokens: tuple[int, ...], score: float = -1.0) -> CtcHypothesis:
    zeros = np.zeros(len(tokens), np.int32)
    return CtcHypothesis(tokens, score, zeros, zeros.astype(np.float32))


@torch.inference_mode()
def test_ties_strangers_and_empty_hypotheses(model_of, monkeypatch) -> None:
    model = model_of("u2pp")
    out = encode(model, "u2pp", (0,))
    first_pass(monkeypatch, [(plain((3, 99)), plain((4,)), plain((3, 98)), plain(()), plain((4,)))])
    nbest = strategy_of(model, beam_size=5).decode_offline(out, requests(1, n_best=5))[0]
    assert [h.tokens for h in nbest] == [(), (4,), (4,), (3, 99), (3, 98)]
    assert nbest[-1].score == -math.inf
    nbest = strategy_of(model, beam_size=5, demote_empty_hyps=True).decode_offline(out, requests(1, 5))[0]
    assert [h.tokens for h in nbest] == [(4,), (4,), (3, 99), (3, 98), ()]
    first_pass(monkeypatch, [(plain((), -math.inf),)])
    with pytest.raises(DecodeError, match="probability above 0"):
        strategy_of(model).decode_offline(out, requests(1))


@pytest.mark.parametrize("scores", [(-3.0, math.nan), (math.nan, -3.0), (-math.inf, -math.inf)])
@torch.inference_mode()
def test_decoders_that_give_no_numbers_fail_the_row(model_of, monkeypatch, scores) -> None:
    model = model_of("u2pp")
    first_pass(monkeypatch, [(plain((3,)), plain((4,)))])
    monkeypatch.setattr(model.decoder, "score", lambda *_, **__: torch.tensor([scores], dtype=torch.float64))
    with pytest.raises(DecodeError, match="decoders' scores are minus infinity or not a number"):
        strategy_of(model).decode_offline(encode(model, "u2pp", (0,)), requests(1))


@torch.inference_mode()
def test_a_row_without_frames_is_empty(model_of) -> None:
    model = model_of("u2pp")
    out = encode(model, "u2pp")
    out = EncoderOutput(torch.tensor([0, *out.lengths[1:].tolist()]), out.hidden, out.log_probs)
    found = strategy_of(model).decode_offline(out, requests(3))
    assert found[0][0].tokens == () and found[0][0].score == 0
    assert found[1][0].tokens


@torch.inference_mode()
def test_weights_come_from_the_options_or_the_checkpoint(model_of) -> None:
    model = model_of("u2pp")
    assert strategy_of(model).reverse_weight == 0.3
    assert strategy_of(model, reverse_weight="0").reverse_weight == 0
    legacy = EngineConfig(
        decode_method="ctc_aed_rescoring",
        legacy_options={"rescoring_ctc_weight": "2", "rescoring_reverse_weight": 1},
    )
    strategy = build_decode_strategy(model, legacy)
    assert (strategy.options.ctc_weight, strategy.reverse_weight) == (2, 1)
    # Without any weight but the CTC's the order is the first pass's.
    out = encode(model, "u2pp")
    heavy = strategy_of(model, ctc_weight=1e9).decode_offline(out, requests(3, n_best=10))
    scores = [[h.score for h in nbest] for nbest in heavy]
    assert all(row == sorted(row, reverse=True) and len(row) == 10 for row in scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reverse_weight": 1.5}, r"reverse_weight: expected within \[0, 1\], got 1.5"),
        ({"ctc_weight": "inf"}, "ctc_weight: expected a finite number"),
        ({"beam_size": 0}, "beam_size: expected an integer >= 1, got 0"),
        ({"beam_size": 3, "nbest": 4}, r"nbest: expected 1 to beam_size \(3\), got 4"),
        ({"nbest": 0}, "nbest: expected 1 to beam_size"),
        ({"blank_threshold": 0}, "blank_threshold"),
        ({"weight": 1}, "unknown decode option 'weight'"),
    ],
)
def test_values_out_of_range_are_refused(model_of, options: dict, message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        strategy_of(model_of("u2pp"), **options)


def test_what_the_checkpoint_cannot_do_is_refused(model_of) -> None:
    with pytest.raises(OptionsError, match="no right-to-left decoder"):
        strategy_of(model_of("conformer-bn"), reverse_weight=0.2)
    assert strategy_of(model_of("conformer-bn"), reverse_weight=0).reverse_weight == 0
    strategy = strategy_of(model_of("u2pp"), nbest=3)
    assert strategy.max_n_best == 3
    with pytest.raises(RequestError, match="at most 3 hypotheses"):
        strategy.validate_options(DecodingOptions(n_best=4))
    with pytest.raises(RequestError, match="no control for 'language'"):
        strategy.validate_options(DecodingOptions(language="de"))
    assert RescoringOptions(nbest=None, beam_size=7).rescored == 7
