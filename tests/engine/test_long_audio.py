"""Long recordings through the engine: read in pieces, decoded as rows, joined, fair to their neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.fake_engines import make_engine
from helpers.fake_models import RATE, FakeModel, clip, expected_tokens
from oasr import Utterance
from oasr.audio import arrays, pieces
from oasr.audio.loader import LoaderSettings
from oasr.audio.vad import DETECTORS
from oasr.errors import OptionsError


class Loudest(FakeModel):
    """The fake model on windows of 2 s, whose transcript is the highest number in them."""

    max_window_s = 2.0

    def __init__(self):
        super().__init__(window=2 * RATE)

    def encode_offline(self, features, lengths, **conditioning):
        loudest = features.amax(dim=1, keepdim=True).expand_as(features)
        return super().encode_offline(loudest, lengths, **conditioning)


@pytest.fixture
def make(monkeypatch):
    """An Engine around the fake model; long is what lasts more than 4 s."""
    monkeypatch.setattr(pieces, "LONG_S", 4.0)
    monkeypatch.setattr(arrays, "BLOCK_FRAMES", 700)
    engines = []

    def build(model=None, **config):
        engines.append(make_engine(monkeypatch, model or Loudest(), **config))
        return engines[-1]

    yield build
    for engine in engines:
        engine.close()


class Loudness:
    """A SpeechScorer: a frame of 10 ms is speech when its first sample is not zero."""

    hop = RATE // 100

    def __init__(self, sample_rate):
        self._rest = np.zeros(0, np.float32)

    def add(self, samples):
        self._rest = np.concatenate([self._rest, samples])
        whole = len(self._rest) // self.hop * self.hop
        scores, self._rest = self._rest[: whole : self.hop] != 0, self._rest[whole:]
        return scores.astype(np.float32)

    def finish(self):
        scores, self._rest = self._rest[:: self.hop] != 0, self._rest[:0]
        return scores.astype(np.float32)


@pytest.fixture
def loudness(monkeypatch):
    monkeypatch.setattr(DETECTORS, "_loaded", {**DETECTORS._loaded, "loudness": Loudness})
    return "loudness"


def text(number):
    return " ".join(map(str, expected_tokens(number)))


def speech(numbers):
    """1 s of each number, with silence behind it: a window each."""
    return np.concatenate([np.concatenate([clip(n, 1000), np.zeros(800, np.float32)]) for n in numbers])


def row(name, samples, **fields):
    return Utterance(name, samples=samples, sample_rate=RATE, **fields)


NUMBERS = [13, 34, 6, 20, 27, 41, 48, 55] * 4


def test_a_recording_read_in_pieces_has_the_result_of_the_whole(make, monkeypatch):
    (output,) = make().transcribe([row("long", speech(NUMBERS), offset=3.6)])
    monkeypatch.setattr(pieces, "LONG_S", 1e6)
    (whole,) = make().transcribe([row("long", speech(NUMBERS), offset=3.6)])
    assert output.text == whole.text == " ".join(text(n) for n in NUMBERS[2:])
    assert output.segments == whole.segments and output.tokens == whole.tokens
    assert output.segments[0][0] == 3.6 and 1.8 * len(NUMBERS) - 0.8 <= output.segments[-1][1]
    assert output.duration_s == whole.duration_s == pytest.approx(1.8 * (len(NUMBERS) - 2))


def test_short_rows_finish_beside_a_long_one_and_the_long_one_beside_them(make):
    rows = [row("long", speech(NUMBERS * 12)), *(row(f"u{n}", clip(n, 100)) for n in range(6, 160))]
    order = [one.id for one, _ in make(max_batch_size=4).stream(rows)]
    assert len(order) == len(rows) == len(set(order))
    assert order.index("long") > 60, "short rows came out meanwhile"
    rows = [*rows[1:], rows[0]]
    order = [one.id for one, _ in make(max_batch_size=4).stream(rows)]
    assert order[-1] == "long"


def test_in_the_order_of_the_list_few_results_wait_for_a_long_one(make):
    engine, taken = make(), []

    def rows():
        for n in range(300):
            taken.append(n)
            yield row("long", speech(NUMBERS * 5)) if n == 5 else row(f"u{n}", clip(13, 50))

    settings = LoaderSettings(RATE, ahead_rows=8)
    order = []
    for one, output in engine.stream(rows(), settings=settings, in_order=True):
        if one.id == "long":
            # Eight may go past it, and some more are read while its last windows are decoded.
            assert max(taken) < 110
        assert output.ok
        order.append(one.id)
    assert order == [f"u{n}" for n in range(5)] + ["long"] + [f"u{n}" for n in range(6, 300)]


def test_windows_come_out_as_they_are_finished_when_asked_for(make):
    rows = [row("short", clip(13, 50)), row("long", speech(NUMBERS)), row("two", speech([6, 13]))]
    told, whole = {}, {}
    for one, output in make().stream(rows, partial=True):
        if output.finished:
            whole[one.id] = output
        else:
            assert one.id not in whole and output.ok
            told.setdefault(one.id, []).append(output)
    assert whole["long"].text == " ".join(text(n) for n in NUMBERS)
    parts = told["long"]
    assert len(parts) > 10 and "short" not in told
    segments = [segment for part in parts for segment in part.segments]
    assert segments == list(whole["long"].segments[: len(segments)]), "in order, and final"
    assert len(NUMBERS) - 3 <= len(segments) < len(NUMBERS)
    assert sum(part.duration_s for part in parts) <= whole["long"].duration_s
    assert all(output.finished for output in make().transcribe(rows))


def test_a_recording_that_breaks_late_is_one_failed_row(make):
    samples = speech(NUMBERS)
    samples[-500] = np.nan
    rows = [row("bad", samples), row("u13", clip(13, 50))]
    outputs = {one.id: output for one, output in make().stream(rows, partial=True) if output.finished}
    assert outputs["u13"].text == text(13)
    assert outputs["bad"].error_stage == "audio" and "NaN" in outputs["bad"].error_message
    assert outputs["bad"].text is None and outputs["bad"].latency_s > 0


def test_a_window_that_fails_fails_a_long_recording(make):
    model = Loudest()
    model.poison = {34: ValueError("bad window")}
    bad, good = make(model).transcribe([row("bad", speech(NUMBERS)), row("u20", clip(20, 50))])
    assert bad.error_stage == "decode" and "bad window" in bad.error_message and good.text == text(20)


def test_a_refused_row_is_not_read_to_its_end(make, monkeypatch):
    taken = 0
    original = arrays.ArrayStream.blocks

    def counted(self, first, last):
        nonlocal taken
        for block in original(self, first, last):
            taken += len(block)
            yield block

    monkeypatch.setattr(arrays.ArrayStream, "blocks", counted)
    rows = [row("de", speech(NUMBERS * 60), language="de"), row("u13", clip(13, 50))]
    settings = LoaderSettings(RATE, ahead_seconds=20.0)
    outputs = {one.id: output for one, output in make().stream(rows, settings=settings)}
    assert outputs["de"].error_stage == "admission" and outputs["u13"].ok
    assert taken < len(rows[0].samples) / 10


def test_callers_who_own_the_loop_get_long_recordings_too(make):
    engine = make()
    engine.add_request(row("long", speech(NUMBERS)))
    (output,) = engine.run()
    assert output.request_id == "long" and output.text == " ".join(text(n) for n in NUMBERS)


def test_an_engine_that_was_left_in_a_long_recording_can_be_used_again(make):
    engine = make()
    for one, _ in engine.stream([row("u6", clip(6)), row("long", speech(NUMBERS))]):
        assert one.id == "u6"
        break
    assert [o.text for o in engine.transcribe([row("u20", clip(20))])] == [text(20)]


def test_stopping_gives_up_a_long_recording_that_is_not_read(make):
    engine = make()
    seen = []
    for one, _ in engine.stream(
        [row("u6", clip(6)), row("long", speech(NUMBERS * 60)), row("u13", clip(13))]
    ):
        seen.append(one.id)
        engine.stop()
    assert "u6" in seen and "long" not in seen


def test_little_of_a_long_recording_is_in_memory_at_any_time(make, monkeypatch):
    held = [0]
    engine = make(max_batch_size=2)
    original = type(engine.executor).step

    def watched(self):
        held.append(sum(len(r.samples) for r in self._buffer._requests.values()))
        return original(self)

    monkeypatch.setattr(type(engine.executor), "step", watched)
    (output,) = engine.transcribe([row("long", speech(NUMBERS * 5))])
    assert len(output.segments) == len(NUMBERS) * 5
    assert max(held) <= 2 * 8 * 2000, "a look-ahead window of requests, and no more"


# Detectors -----------------------------------------------------------------------------------


def test_only_speech_is_decoded_and_regions_are_told(make, loudness):
    quiet = np.zeros(5000, np.float32)
    audio = np.concatenate([quiet, clip(13, 1500), quiet, clip(34, 1500), quiet])
    model = Loudest()
    (output,) = make(model, vad=loudness).transcribe([row("u", audio, offset=1.0)])
    assert output.text == f"{text(13)} {text(34)}"
    assert output.speech == (pytest.approx((5.0, 6.5)), pytest.approx((11.5, 13.0)))
    assert sum(model.batches) == 2 and output.duration_s == pytest.approx(17.0)
    for (start, end, _), (begin, stop) in zip(output.segments, output.speech, strict=True):
        assert start <= begin and stop <= end and end - start <= 2.0


def test_a_recording_without_speech_is_an_empty_text_that_cost_no_decode(make, loudness):
    model = Loudest()
    model.stated_language = lambda options: "en"
    noise = np.zeros(9000, np.float32)
    short, long = make(model, vad=loudness).transcribe([row("a", noise[:900]), row("b", noise)])
    for output in (short, long):
        assert output.ok and output.text == "" and output.speech == () and output.language == "en"
    assert model.batches == []


def test_none_refuses_what_the_model_cannot_take_whole_and_names_the_limit(make):
    outputs = list(
        make(vad="none").transcribe(
            [row("a", clip(13, 2000)), row("b", clip(13, 2001)), row("c", speech(NUMBERS))]
        )
    )
    assert outputs[0].text == text(13) and outputs[0].speech is None
    for output in outputs[1:]:
        assert output.error_stage == "admission"
        assert "a window at most 2 s and --vad none cuts nothing" in output.error_message


def test_a_smaller_window_may_be_asked_for_and_a_larger_one_not(make):
    (output,) = make(max_window_s=1.0).transcribe([row("u", clip(13, 1500))])
    assert len(output.segments) == 2
    with pytest.raises(OptionsError, match=r"max_window_s: expected at most 2 s.*got 2.5 s"):
        make(max_window_s=2.5)


def test_an_unknown_detector_is_refused_before_the_model_is_loaded(make, monkeypatch):
    with pytest.raises(OptionsError, match="vad: expected pauses, energy, silero, none"):
        make(vad="webrtc")


def test_an_overlap_is_joined_in_the_text(make, monkeypatch):
    """A model whose transcript is the second that each sample stands for, and no pause anywhere."""

    class Seconds(FakeModel):
        max_window_s = 10.0

        def __init__(self):
            super().__init__(window=10 * RATE, families=("fake_ctc",))

    engine = make(Seconds(), decode_method="fake_ctc")

    def decode_offline(encoder_out, requests):
        from oasr.types import Hypothesis

        found = []
        for request in requests:
            first, last = request.samples[0] * 1000, request.samples[-1] * 1000
            # Words at the edges are cut: they are heard when they are whole.
            whole = range(int(np.ceil(first)), int(last))
            found.append((Hypothesis(tuple(whole), 0.0),))
        return found

    monkeypatch.setattr(engine.strategy, "decode_offline", decode_offline)
    monkeypatch.setattr(type(engine.strategy), "decode_offline_async", lambda *_: None)
    seconds = 60
    ramp = np.repeat(np.arange(10, 10 + 4 * seconds, dtype=np.float32), RATE // 4) / 1000
    (output,) = engine.transcribe([row("u", ramp)])
    said = [int(word) for word in output.text.split()]
    assert said == sorted(set(said)), "no word twice"
    assert len(said) >= 4 * seconds - 2, "no word lost"
    assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(output.segments))
