"""Windows of one utterance → one result: words and token times over the joints."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from oasr import DecodingOptions
from oasr.executor.joining import Whole, best_sums
from oasr.executor.rescue import Outcome
from oasr.executor.results import Ended, ResultAssembler
from oasr.types import Hypothesis, Request, WordTiming


class Tokenizer:
    def decode(self, ids) -> str:
        return " ".join(f"w{i}" for i in ids)


def joined(windows: list[tuple[float, list[tuple[float, float]]]], asked: bool = True, end_s: float = 30.0):
    """The result of windows that begin at given seconds and hold words with given times."""
    assembler = ResultAssembler(Tokenizer())
    assembler.expect(1, "u", 0.0)
    results, count = [], 0
    for number, (start_s, times) in enumerate(windows):
        ids = tuple(range(count, count + len(times)))
        count += len(times)
        words = tuple(WordTiming(f"w{i}", *time, 0.5) for i, time in zip(ids, times, strict=True))
        options = DecodingOptions(word_timestamps=asked)
        request = Request("u", np.zeros(100, np.float32), 10, options, 1, number, start_s)
        timed = {"words": words, "timestamps": tuple(times)} if ids and asked else {}
        results.append(assembler.add(Outcome(request, (Hypothesis(ids, -1.0, 0.5, **timed),))))
    results.append(assembler.end(1, Ended(len(windows), 30.0, end_s)))
    return results[-1]


def test_words_of_all_windows_in_order() -> None:
    output = joined([(0.0, [(0.5, 1.0), (1.0, 2.0)]), (10.0, []), (20.0, [(20.0, 20.5)])])
    assert [(w.word, w.start, w.end) for w in output.words] == [
        ("w0", 0.5, 1.0), ("w1", 1.0, 2.0), ("w2", 20.0, 20.5),
    ]  # fmt: skip
    assert output.timestamps == ((0.5, 1.0), (1.0, 2.0), (20.0, 20.5))


def test_silence_is_no_words_and_not_asked_is_unknown() -> None:
    assert joined([(0.0, []), (10.0, [])]).words == ()
    assert joined([(0.0, []), (10.0, [])]).timestamps == ()
    assert joined([(0.0, []), (10.0, [(11.0, 12.0)])], asked=False).words is None


def test_times_never_run_backwards_where_windows_overlap() -> None:
    output = joined([(0.0, [(8.0, 9.0), (9.0, 10.0)]), (9.0, [(9.5, 9.8), (9.8, 11.0), (11.0, 11.2)])])
    times = [(w.start, w.end) for w in output.words]
    assert times == [(8.0, 9.0), (9.0, 10.0), (9.5, 10.0), (10.0, 11.0), (11.0, 11.2)]
    assert output.timestamps == ((8.0, 9.0), (9.0, 10.0), (9.5, 10.0), (9.8, 11.0), (11.0, 11.2))


def test_times_lie_inside_the_recording() -> None:
    """A resampled window may be a fraction of a sample longer than its recording."""
    output = joined([(0.0, [(0.5, 1.0), (1.0, 2.00003)])], end_s=2.0)
    assert [w.end for w in output.words] == [1.0, 2.0] and output.timestamps[-1] == (1.0, 2.0)


def with_alternatives(windows: list[list[tuple[float, tuple[int, ...]]]], cuts=(), n_best: int = 3):
    assembler = ResultAssembler(Tokenizer())
    assembler.expect(1, "u", 0.0)
    options, cuts = DecodingOptions(n_best=n_best), dict(cuts)
    for number, window in enumerate(windows):
        times = {"window": number, "start_s": 10.0 * number, "cut_s": cuts.get(number)}
        request = Request("u", np.zeros(110, np.float32), 10, options, 1, **times)
        hypotheses = tuple(Hypothesis(ids, score, 0.5) for score, ids in window)
        assembler.add(Outcome(request, hypotheses))
    return assembler.end(1, Ended(len(windows), 30.0, 30.0))


def test_alternatives_of_several_windows_are_those_of_the_best_sums() -> None:
    output = with_alternatives([[(-1.0, (1,)), (-2.0, (2,))], [(-3.0, (3,)), (-3.5, ()), (-9.0, (4,))]])
    assert list(zip(output.nbest_texts, output.scores, output.tokens, strict=True)) == [
        ("w1 w3", -4.0, (1, 3)), ("w1", -4.5, (1,)), ("w2 w3", -5.0, (2, 3)),
    ]  # fmt: skip
    assert output.text == "w1 w3"


def test_a_window_that_was_fitted_to_its_neighbour_has_no_alternatives() -> None:
    first = [(-1.0, (1, 2, 3)), (-2.0, (7,))]
    output = with_alternatives([first, [(-3.0, (2, 3, 4)), (-4.0, (8,))]], cuts={1: 10.5}.items())
    assert output.nbest_texts == ("w1 w2 w3 w4",) and output.text == "w1 w2 w3 w4"
    assert output.scores == (-4.0,) and len(output.tokens) == 1


SCORES = st.lists(st.integers(-40, 0).map(lambda x: x / 8), min_size=1, max_size=4)


@given(st.lists(SCORES, min_size=1, max_size=4), st.integers(1, 6))
def test_best_sums_are_those_of_all_combinations(windows, n) -> None:
    lists = [
        [Whole(score, f"{w}.{i}", (w, i)) for i, score in enumerate(sorted(scores, reverse=True))]
        for w, scores in enumerate(windows)
    ]
    every = [
        (sum(h.score for h in chosen), " ".join(h.text for h in chosen))
        for chosen in itertools.product(*lists)
    ]
    found = best_sums(lists, n)
    # Multiples of 1/8 add up exactly, so that ties are ties.
    assert [h.score for h in found] == [score for score, _ in sorted(every, reverse=True)[:n]]
    assert {(h.score, h.text) for h in found} <= set(every) and len({h.text for h in found}) == len(found)
    assert found[0].text == " ".join(scores[0].text for scores in lists)
