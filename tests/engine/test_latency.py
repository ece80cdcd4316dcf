"""`latency_s` is the time from a row's admission to its result, whichever way the row goes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.fake_engines import make_engine
from helpers.fake_models import RATE, FakeModel, clip
from oasr import Utterance
from oasr.types import RowFailure

ENCODE_S, STEP_S, ADMIT_S = 8.0, 0.5, 0.25


class Clock:
    """A clock that only the fake model and the admission of rows move."""

    now = 100.0

    def perf_counter(self):
        return self.now


class Watched:
    """An engine on that clock, which notes when each row is admitted."""

    def __init__(self, monkeypatch, model=None, **config):
        self.clock, self.admitted = Clock(), {}
        self.model = model or FakeModel()
        self.engine = make_engine(monkeypatch, self.model, **config)
        for module in ("oasr.admission", "oasr.executor.results"):
            monkeypatch.setattr(f"{module}.time", SimpleNamespace(perf_counter=self.clock.perf_counter))
        self._slow_down(monkeypatch, self.model, "encode_offline", ENCODE_S)
        self._slow_down(monkeypatch, self.model, "forward_offline", ENCODE_S)
        self._slow_down(monkeypatch, self.model.decoder, "step", STEP_S)
        admit = self.engine._admit

        def noted(loaded, base):
            self.admitted.setdefault((loaded.utterance or loaded.failure).id, self.clock.now)
            key = admit(loaded, base)
            self.clock.now += ADMIT_S
            return key

        monkeypatch.setattr(self.engine, "_admit", noted)

    def _slow_down(self, monkeypatch, owner, name, seconds):
        fast = getattr(owner, name)

        def slow(*args, **kwargs):
            self.clock.now += seconds
            return fast(*args, **kwargs)

        monkeypatch.setattr(owner, name, slow)

    def run(self, rows):
        """Results by id, each checked against the clock at the moment it comes out."""
        found = {}
        with self.engine:
            for row, output in self.engine.stream(rows):
                # Nothing moves the clock between the making of a result and its coming out.
                assert output.latency_s == pytest.approx(self.clock.now - self.admitted[row.id]), row.id
                found[row.id] = output
        assert len(found) == len(rows)
        return found


@pytest.fixture
def watched(monkeypatch):
    return lambda *args, **config: Watched(monkeypatch, *args, **config)


def row(number, samples=50, **fields):
    return Utterance(f"u{number}", samples=clip(number, samples), sample_rate=RATE, **fields)


@pytest.mark.parametrize("family", ["fake_ar", "fake_ctc"])
def test_rows_wait_for_their_batch_and_say_so(watched, family):
    outputs = watched(decode_method=family).run([row(n) for n in range(6, 60)])
    assert min(o.latency_s for o in outputs.values()) >= ENCODE_S
    assert max(o.latency_s for o in outputs.values()) > 2 * ENCODE_S


def test_joined_windows_count_to_the_last_of_them(watched):
    parts = [np.concatenate([clip(n, 150), np.zeros(30, np.float32)]) for n in (13, 34, 6, 20, 27)]
    long = Utterance("long", samples=np.concatenate(parts), sample_rate=RATE)
    outputs = watched(max_batch_size=2).run([long, row(41)])
    assert len(outputs["long"].segments) >= 3
    assert outputs["long"].latency_s > 2 * ENCODE_S


def test_a_row_decoded_again_counts_both_times(watched):
    run = watched()

    def reconsider(request, hypotheses):
        return replace(request, attempt=1) if request.id == "u13" and request.attempt == 0 else None

    run.engine.strategy.reconsider = reconsider
    outputs = run.run([row(n) for n in (6, 13, 20, 27)])
    assert run.engine.executor.counters.redecoded == 1
    assert outputs["u13"].latency_s > 2 * ENCODE_S > max(outputs[f"u{n}"].latency_s for n in (6, 20, 27))


def test_rows_of_a_failed_batch_count_from_their_first_admission(watched):
    model = FakeModel()
    model.poison = {13: ValueError("bad row")}
    outputs = watched(model).run([row(n) for n in (6, 13, 20, 27)])
    assert [o.ok for o in outputs.values()].count(False) == 1
    assert not outputs["u13"].ok and outputs["u13"].latency_s > ENCODE_S
    assert outputs["u27"].latency_s > 2 * ENCODE_S


def test_rows_of_a_batch_that_was_too_large_do_too(watched):
    model = FakeModel()
    model.max_rows = 1
    run = watched(model)
    outputs = run.run([row(n) for n in (6, 13, 20, 27)])
    assert run.engine.executor.counters.oom_splits > 0
    assert all(o.ok and o.latency_s > ENCODE_S for o in outputs.values())


def test_a_failed_window_leaves_the_latency_of_the_whole_utterance(watched):
    model = FakeModel()
    model.poison = {34: ValueError("bad window")}
    parts = [np.concatenate([clip(n, 150), np.zeros(30, np.float32)]) for n in (13, 34, 6)]
    outputs = watched(model, max_batch_size=1).run(
        [Utterance("long", samples=np.concatenate(parts), sample_rate=RATE), row(20)]
    )
    assert not outputs["long"].ok and outputs["long"].latency_s > 2 * ENCODE_S


def test_rows_that_end_at_admission_count_until_they_are_handed_out(watched):
    rows = [
        Utterance("absent", "no-such-file.wav"),
        RowFailure("malformed", 1, "manifest", "bad row"),
        row(13, language="de"),
        Utterance("silent", samples=np.zeros(50, np.float32), sample_rate=RATE),
        row(20),
    ]
    outputs = watched().run(rows)
    assert [o.error_stage for o in outputs.values()] == ["audio", "manifest", "admission", None, None]
    # They waited while the rows behind them were admitted.
    assert all(outputs[name].latency_s > 0 for name in ("absent", "malformed", "u13", "silent"))
