"""Family ctc_cuda: its options, n-bests, times and failures, alone and through the executor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from helpers.fake_models import FakeFrontend
from oasr.config import EngineConfig
from oasr.decode.ctc_gpu import CtcGpuDecodeStrategy
from oasr.decode.strategy import DecodeStrategy, build_decode_strategy
from oasr.errors import CapabilityError, DecodeError, OptionsError, RequestError
from oasr.executor.offline import OfflineExecutor
from oasr.executor.results import Ended, ResultAssembler
from oasr.kernels.ctc_beam import CtcSearch, decode, unpack
from oasr.models.interfaces import AsrModel, EncoderOutput
from oasr.tokenizers.base import Tokenizer
from oasr.types import DecodingOptions, Request

LETTERS = "_ abcdefgh"  # blank, a space, letters
RATE = 1000


class Spelling(Tokenizer):
    """A letter an id."""

    @property
    def vocab_size(self) -> int:
        return len(LETTERS)

    def encode(self, text: str) -> list[int]:
        return [LETTERS.index(c) for c in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(LETTERS[i] for i in ids)


class CtcModel(AsrModel):
    """A frame a sample; a sample of n / 1000 says which row of a random table the frame's posteriors are."""

    architecture = "table"
    default_decode_type = "ctc"
    frame_shift_ms = 1.0
    subsampling_rate = 1
    max_window_s = 60.0

    def __init__(self) -> None:
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.frontend = FakeFrontend(window=None)
        self.tokenizer = Spelling()
        self.blank_id = 0
        generator = torch.Generator().manual_seed(5)
        self.table = (2 * torch.randn(1000, len(LETTERS), generator=generator)).log_softmax(-1)
        self.table[999] = -math.inf
        self.families: tuple[str, ...] = (self.default_decode_type,)

    @property
    def capabilities(self) -> tuple[str, ...]:
        return self.families

    def forward_offline(self, features, lengths, **conditioning):
        rows = self.table[(features[..., 0] * 1000).round().long().cpu()]
        rows[torch.arange(features.shape[1]) >= lengths.cpu()[:, None]] = math.nan
        return EncoderOutput(lengths.cpu(), log_probs=rows.to(self.anchor.device))


def request(numbers: Sequence[int], key: int = 0, start_s: float = 0.0, **options) -> Request:
    samples = np.asarray(numbers, dtype=np.float32) / 1000
    return Request(f"u{key}", samples, RATE, DecodingOptions(**options), key, start_s=start_s)


def build(**options) -> CtcGpuDecodeStrategy:
    strategy = build_decode_strategy(CtcModel(), EngineConfig(decode_options=options))
    assert isinstance(strategy, CtcGpuDecodeStrategy)
    return strategy


def run(strategy: CtcGpuDecodeStrategy, requests: list[Request], **config) -> dict[int, object]:
    executor = OfflineExecutor(strategy.model, strategy, EngineConfig(**config))
    results = ResultAssembler(strategy.model.tokenizer)
    outputs, waiting = {}, list(requests)
    for one in requests:
        results.expect(one.key, one.id, one.admitted_at)
        results.end(one.key, Ended(1, one.duration_s))
    while waiting or executor.has_work:
        while waiting and executor.wants_more:
            executor.add(waiting.pop(0))
        for outcome in executor.step():
            outputs[outcome.request.key] = results.add(outcome)
    executor.close()
    return outputs


def clips(count: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 999, size=int(n)).tolist() for n in rng.integers(1, 60, size=count)]


def test_ctc_means_this_family() -> None:
    assert build().name == "ctc_cuda"
    assert isinstance(
        build_decode_strategy(CtcModel(), EngineConfig(decode_method="ctc_cuda")), CtcGpuDecodeStrategy
    )
    model = CtcModel()
    del model.blank_id
    with pytest.raises(CapabilityError, match="lacks the model members: blank_id"):
        build_decode_strategy(model, EngineConfig())


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"beam_size": 0}, "beam_size: expected an integer >= 1, got 0"),
        ({"blank_threshold": 0}, "blank_threshold: expected within"),
        ({"blank_threshold": "nan"}, "blank_threshold"),
        ({"blank_threshold": 1.5}, "blank_threshold"),
        ({"nbest": 0}, "nbest: expected 1 to beam_size"),
        ({"beam_size": 2, "nbest": 3}, r"nbest: expected 1 to beam_size \(2\), got 3"),
        ({"beam": 2}, "unknown decode option 'beam'; valid: beam_size, blank_threshold, nbest"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, object], word: str) -> None:
    with pytest.raises(OptionsError, match=word):
        build(**options)


@pytest.mark.parametrize("family", ["ctc_cuda", "ctc_aed_rescoring"])
def test_a_beam_that_no_search_could_number_is_refused_at_construction(family: str) -> None:
    model, most = CtcModel(), (2**32 - 1) // len(LETTERS)
    model.vocab_size = len(LETTERS)
    # What rescoring needs beside a CTC model, and no more than is looked at here.
    model.families = ("ctc", "ctc_aed_rescoring")
    model.reverse_weight, model.decoder = 0.0, Mock()

    def construct(beam_size: int) -> DecodeStrategy:
        options = {"beam_size": beam_size}
        return build_decode_strategy(model, EngineConfig(decode_method=family, decode_options=options))

    assert construct(most).options.beam_size == most
    words = f"beam_size: expected at most {most} with a vocabulary of {len(LETTERS)}, got {most + 1}"
    with pytest.raises(OptionsError, match=words):
        construct(most + 1)


@pytest.mark.parametrize("options", [{}, {"beam_size": "1"}, {"beam_size": 6, "blank_threshold": 0.5}])
def test_the_result_is_the_search_under_the_options(options: dict[str, object]) -> None:
    strategy = build(**options)
    beam, threshold = int(options.get("beam_size", 10)), float(options.get("blank_threshold", 1))
    (numbers,) = clips(1, seed=3)
    rows = strategy.model.table[numbers][None]
    (found,) = unpack(decode(rows, torch.tensor([len(numbers)]), CtcSearch(beam, 0, threshold)))[0]
    output = run(strategy, [request(numbers)])[0]
    assert output.text == "".join(LETTERS[i] for i in found.tokens).strip()
    assert output.tokens == (found.tokens,) and output.scores == (found.score,)
    assert output.confidence == pytest.approx(float(np.exp(found.log_probs).mean()))
    assert output.words is None and output.nbest_texts == ()


@pytest.mark.parametrize("timed", [False, True])
def test_a_row_is_the_same_in_every_batch(timed: bool) -> None:
    strategy = build(nbest=3)
    requests = [request(c, k, word_timestamps=timed) for k, c in enumerate(clips(40))]
    alone = run(strategy, requests, max_batch_size=1)
    # Asking for words changes no bit of anything else.
    asked = run(strategy, [request(c, k, word_timestamps=not timed) for k, c in enumerate(clips(40))])
    for key, one in alone.items():
        other = asked[key]
        assert (other.tokens, other.scores, other.confidence) == (one.tokens, one.scores, one.confidence)
    assert sorted(alone) == list(range(40)) and len({o.text for o in alone.values()}) > 20
    for size, order in ((7, requests), (64, requests[::-1])):
        together = run(strategy, order, max_batch_size=size)
        for key, one in alone.items():
            same = together[key]
            assert (same.text, same.nbest_texts, same.scores) == (one.text, one.nbest_texts, one.scores)
            assert (same.words, same.timestamps, same.confidence) == (
                one.words,
                one.timestamps,
                one.confidence,
            )


def test_n_best_is_what_the_row_or_the_option_asks_for() -> None:
    (numbers,) = clips(1, seed=8)
    requests = [request(numbers, 0), request(numbers, 1, n_best=4), request(numbers, 2, n_best=2)]
    counts = {key: len(output.tokens) for key, output in run(build(), requests).items()}
    assert counts == {0: 1, 1: 4, 2: 2}
    outputs = run(build(nbest="3"), requests)
    assert {key: len(output.nbest_texts) for key, output in outputs.items()} == {0: 3, 1: 4, 2: 3}
    scores = outputs[1].scores
    assert list(scores) == sorted(scores, reverse=True) and len(set(outputs[1].tokens)) == 4
    with pytest.raises(RequestError, match="at most 5 hypotheses"):
        build(beam_size=5).validate_options(DecodingOptions(n_best=6))


def spoken(text: str, frames_each: int = 4) -> tuple[torch.Tensor, list[int]]:
    """Posteriors that say `text`, a letter every few frames, and the frames of the letters."""
    frames = [2 + i * frames_each for i in range(len(text))]
    logits = torch.zeros(frames[-1] + 5, len(LETTERS))
    logits[:, 0] = 8
    for frame, letter in zip(frames, text, strict=True):
        logits[frame, LETTERS.index(letter)] = 16
    return logits.log_softmax(-1), frames


def test_words_lie_where_their_letters_were_emitted() -> None:
    strategy = build()
    rows, frames = spoken("ab cab")
    strategy.model.table[: len(rows)] = rows
    output = run(strategy, [request(range(len(rows)), start_s=10.0, word_timestamps=True)])[0]
    assert output.text == "ab cab"
    assert [w.word for w in output.words] == ["ab", "cab"]
    assert [round(t[1], 6) for t in output.timestamps] == [round(10 + (f + 1) / 1000, 6) for f in frames]
    first, second = output.words
    assert (first.start, first.end) == (pytest.approx(10.002), pytest.approx(10.007))
    assert (second.start, second.end) == (pytest.approx(10.011), pytest.approx(10.023))
    assert 0.9 < min(w.confidence for w in output.words) <= output.confidence + 1e-9 <= 1 + 1e-9


def test_a_row_without_speech_is_empty() -> None:
    strategy = build()
    strategy.model.table[7] = torch.full((len(LETTERS),), -40.0)
    strategy.model.table[7, 0] = 0.0
    output = run(strategy, [request([7] * 20, word_timestamps=True)])[0]
    assert (output.text, output.tokens, output.words, output.confidence) == ("", ((),), (), None)


def test_an_impossible_row_fails_alone() -> None:
    strategy = build()
    listed = clips(6)
    good = run(strategy, [request(c, k) for k, c in enumerate(listed)])
    listed[2] = [999] * 30
    outputs = run(strategy, [request(c, k) for k, c in enumerate(listed)])
    assert outputs[2].error_stage == "decode" and "minus infinity or not a number" in outputs[2].error_message
    assert {k: o.text for k, o in outputs.items() if k != 2} == {k: o.text for k, o in good.items() if k != 2}


def test_an_encoder_without_log_probabilities_is_named() -> None:
    with pytest.raises(DecodeError, match="table encoder gave no log-probabilities"):
        build().decode_offline(EncoderOutput(torch.tensor([1]), torch.zeros(1, 1, 1)), [request([1])])


def test_what_cannot_be_honoured_is_refused() -> None:
    strategy = build()
    for option in ({"task": "transcribe"}, {"language": "en"}, {"prompt": "x"}):
        with pytest.raises(RequestError, match="has no control for"):
            strategy.validate_options(DecodingOptions(**option))
    strategy.validate_options(DecodingOptions(word_timestamps=True))
    with pytest.raises(RequestError, match="modes that work: offline"):
        strategy.validate_options(DecodingOptions(word_timestamps=True), mode="streaming")
    strategy.model.subsampling_rate = None
    with pytest.raises(RequestError, match="length of an encoder frame"):
        strategy.validate_options(DecodingOptions(word_timestamps=True))


@pytest.mark.gpu
def test_the_gpu_gives_what_the_cpu_gives() -> None:
    strategy = build(nbest=4)
    requests = [request(c, k, word_timestamps=k % 2 == 0) for k, c in enumerate(clips(50))]
    expected = run(strategy, requests, max_batch_size=8)
    strategy.model.anchor.data = strategy.model.anchor.data.cuda()
    found = run(strategy, requests, max_batch_size=8)
    for key, one in expected.items():
        assert (found[key].nbest_texts, found[key].scores) == (one.nbest_texts, one.scores)
        assert (found[key].words, found[key].confidence) == (one.words, one.confidence)
