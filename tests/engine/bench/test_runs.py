"""Passes through a real engine around the fake model, on a clock that the model moves."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.fake_engines import make_engine
from helpers.fake_models import RATE, FakeModel, clip, expected_tokens
from oasr import DecodingOptions, Utterance
from oasr.audio.loader import LoaderSettings
from oasr.bench import runs
from oasr.bench.runs import Work, measure
from oasr.bench.watch import Watch
from oasr.types import RowFailure


def text(number):
    return " ".join(map(str, expected_tokens(number)))


def listed(numbers, samples=50):
    return [
        Utterance(f"u{n}", index=i, samples=clip(n, samples), sample_rate=RATE, text=text(n))
        for i, n in enumerate(numbers)
    ]


def work(rows, **fields):
    return Work(
        rows, DecodingOptions(), LoaderSettings(16000), lambda row: getattr(row, "text", None), **fields
    )


class Follower(Watch):
    """Notes what it is told; stops the engine at the `stop_at`-th result."""

    def __init__(self, stop_at=None, clock=None):
        self.names, self.ended, self.results, self.at = [], [], 0, []
        self.stop_at, self.clock, self.engine = stop_at, clock, None

    @property
    def stopped(self):
        return self.stop_at is not None and self.results >= self.stop_at

    def begin(self, engine, name):
        self.engine = engine
        self.names.append(name)

    def result(self, row, output):
        self.results += 1
        if self.clock is not None:
            self.at.append(self.clock.now)
        if self.stopped:
            self.engine.stop()

    def end(self, done):
        self.ended.append(done)


@pytest.fixture
def load(monkeypatch):
    def prepared(model=None, **config):
        return lambda: make_engine(monkeypatch, model, **config)

    return prepared


def test_warm_ups_come_first_and_do_not_count(load):
    follower = Follower()
    done = measure(load(), work(listed(range(6, 30)), repeat=3, warmup=2), follower)
    assert follower.names == [
        "warm-up 1 of 2",
        "warm-up 2 of 2",
        "pass 1 of 3",
        "pass 2 of 3",
        "pass 3 of 3",
    ]
    assert follower.ended == [*done.warmups, *done.passes]
    assert (len(done.warmups), len(done.passes)) == (2, 3)
    for one in (*done.warmups, *done.passes):
        assert (one.rows, one.failed, len(one.latencies_s)) == (24, 0, 24)
        assert one.audio_s == pytest.approx(24 * 0.05)
        assert one.counters.rows == 24 and one.counters.seconds["output"] > 0
        assert one.counters.padding_share == pytest.approx(0.75)
    assert len({one.texts_sha256 for one in (*done.warmups, *done.passes)}) == 1
    assert (done.batch_size, done.in_flight, done.device, done.decode_method) == (4, 8, "cpu", "fake_ar")
    assert done.peak_rss_bytes > 2**20 and done.peak_gpu_bytes is None


def test_times_are_those_of_the_results(load, monkeypatch):
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(runs, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    model = FakeModel()
    encode = model.encode_offline

    def slow(*args, **kwargs):
        clock.now += 2.0
        return encode(*args, **kwargs)

    model.encode_offline = slow
    follower = Follower(clock=clock)
    done = measure(load(model), work(listed(range(6, 40)), repeat=1, warmup=1), follower)
    (one,) = done.passes
    start = follower.at[33]  # the warm-up's last result: nothing moves the clock between the passes
    assert one.arrivals_s == pytest.approx([at - start for at in follower.at[34:]])
    assert one.wall_s == pytest.approx(2.0 * one.counters.batches)
    assert done.load_s == 0


def test_the_first_measured_pass_is_scored(load):
    rows = listed(range(6, 16))
    rows[3] = Utterance("wrong", index=3, samples=clip(48), sample_rate=RATE, text="0 0 0 0 0 0")
    rows[5] = Utterance("bare", index=5, samples=clip(20), sample_rate=RATE)
    done = measure(load(), work(rows, repeat=2, warmup=1), Watch())
    assert done.score["wer"]["substitutions"] == 6
    assert done.score["without_reference"] == 1
    references = sum(n % 7 for n in range(6, 16)) - 9 % 7 - 11 % 7 + 6
    assert done.score["wer"]["reference_units"] == references


def test_failed_rows_count_as_rows_and_never_as_audio(load):
    rows = [*listed((13, 20)), RowFailure("bad", 2, "manifest", "no audio", row={"text": "x"})]
    rows.append(Utterance("absent", "no-such-file.wav", index=3, text="y"))
    (one,) = measure(load(), work(rows, repeat=1, warmup=0), Watch()).passes
    assert (one.rows, one.failed, len(one.latencies_s)) == (4, 2, 2)
    assert one.audio_s == pytest.approx(0.1)


def test_rows_failed_in_the_engine_are_counted_too(load):
    model = FakeModel()
    model.poison = {13: ValueError("bad row")}
    (one,) = measure(load(model), work(listed((6, 13, 20)), repeat=1, warmup=0), Watch()).passes
    assert (one.rows, one.failed, one.counters.isolated) == (3, 1, 3)
    assert one.audio_s == pytest.approx(0.1)


def test_texts_have_one_digest_in_any_order_and_another_when_one_differs(load):
    numbers = list(range(6, 40))
    one = measure(load(max_batch_size=1), work(listed(numbers), repeat=1, warmup=0), Watch()).passes[0]
    many = measure(load(max_batch_size=16), work(listed(numbers), repeat=1, warmup=0), Watch()).passes[0]
    numbers[7] = 500
    other = measure(load(), work(listed(numbers), repeat=1, warmup=0), Watch()).passes[0]
    assert one.texts_sha256 == many.texts_sha256 != other.texts_sha256


@pytest.mark.parametrize(("stop_at", "passes"), [(30, None), (3, None), (48, 1), (60, 1)])
def test_a_pass_that_was_stopped_does_not_count(load, stop_at, passes):
    # 24 rows a pass: 30 stops the first measured pass, 3 the warm-up, 60 the second measured pass; 48 at
    # the last result of the first one leaves no telling whether it was whole.
    follower = Follower(stop_at)
    done = measure(load(), work(listed(range(6, 30)), repeat=3, warmup=1), follower)
    if stop_at == 48:
        assert done is None
        return
    assert (None if done is None else len(done.passes)) == passes
    assert len(follower.ended) == stop_at // 24


def test_the_engine_is_closed_whatever_happens(load, monkeypatch):
    closed = []
    monkeypatch.setattr("oasr.engine.Engine.close", lambda self: closed.append(True))
    monkeypatch.setattr(runs, "one_pass", lambda *_: (_ for _ in ()).throw(RuntimeError("broke")))
    with pytest.raises(RuntimeError, match="broke"):
        measure(load(), work(listed((6,))), Watch())
    assert closed == [True]


def test_long_rows_count_once_with_all_their_windows(load):
    parts = np.concatenate([np.concatenate([clip(n, 150), np.zeros(30, np.float32)]) for n in (13, 34, 6)])
    rows = [Utterance("long", samples=parts, sample_rate=RATE, text="x")]
    (one,) = measure(load(), work(rows, repeat=1, warmup=0), Watch()).passes
    assert one.rows == 1 < one.counters.rows
    assert one.audio_s == pytest.approx(0.54)
