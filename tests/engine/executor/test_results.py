"""Windows of one utterance → one result: words and token times over the joints."""

from __future__ import annotations

import numpy as np
from oasr import DecodingOptions
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


def test_times_lie_inside_the_recording() -> None:
    """A resampled window may be a fraction of a sample longer than its recording."""
    output = joined([(0.0, [(0.5, 1.0), (1.0, 2.00003)])], end_s=2.0)
    assert [w.end for w in output.words] == [1.0, 2.0] and output.timestamps[-1] == (1.0, 2.0)
