import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.fake_engines import make_engine
from helpers.fake_models import RATE, FakeModel, clip, expected_tokens
from oasr import Engine, EngineConfig, Utterance
from oasr.errors import CapabilityError, OptionsError, RequestError
from oasr.types import RowFailure


@pytest.fixture
def make(monkeypatch):
    """An Engine around the fake model; families are registered for this test alone."""
    engines = []

    def build(model=None, **config):
        engines.append(make_engine(monkeypatch, model, **config))
        return engines[-1]

    yield build
    for engine in engines:
        engine.close()


def text(number):
    return " ".join(map(str, expected_tokens(number)))


def test_results_come_in_the_order_of_the_items(make):
    numbers = [101, 6, 350, 13, 48, 2, 700, 34, 55] * 3
    items = [(clip(n, 30 + n % 90), RATE) for n in numbers]
    outputs = list(make().transcribe(items))
    assert [o.text for o in outputs] == [text(n) for n in numbers]
    assert [o.request_id for o in outputs] == [f"item-{i}" for i in range(len(numbers))]
    assert all(o.latency_s > 0 and o.duration_s > 0 for o in outputs)


def test_items_are_read_lazily(make):
    taken = itertools.count()
    last = [0]

    def endless():
        while True:
            last[0] = next(taken)
            yield clip(13), RATE

    outputs = make().transcribe(endless())
    for _ in range(10):
        assert next(outputs).text == text(13)
    assert last[0] < 250
    outputs.close()


def test_an_abandoned_list_leaves_the_engine_usable(make):
    engine = make()
    first = engine.transcribe([(clip(n), RATE) for n in range(1, 60)])
    next(first)
    first.close()
    assert [o.text for o in engine.transcribe([(clip(20), RATE)])] == [text(20)]


def test_failed_rows_keep_their_place(make, tmp_path):
    rows = [
        Utterance("a", samples=clip(13), sample_rate=RATE),
        Utterance("b", str(tmp_path / "absent.wav")),
        RowFailure("c", 2, "manifest", "bad row"),
        Utterance("d", samples=clip(20), sample_rate=RATE, language="de"),
        Utterance("e", samples=clip(27), sample_rate=RATE),
    ]
    outputs = list(make().transcribe(rows))
    assert [o.request_id for o in outputs] == ["a", "b", "c", "d", "e"]
    assert [o.error_stage for o in outputs] == [None, "audio", "manifest", "admission", None]
    assert outputs[2].error_message == "bad row"
    assert "language" in outputs[3].error_message
    assert (outputs[0].text, outputs[4].text) == (text(13), text(27))


def test_a_prompt_that_no_tokenizer_could_read_fails_its_row_alone(make):
    rows = [
        Utterance(str(n), samples=clip(13), sample_rate=RATE, prompt=p) for n, p in enumerate(("\udce9", ""))
    ]
    refused, good = make().transcribe(rows)
    assert refused.error_stage == "admission" and "text that UTF-8 can write" in refused.error_message
    assert good.text == text(13)


def test_stream_pairs_every_row_with_its_result(make):
    rows = [
        Utterance(f"u{n}", index=i, samples=clip(n), sample_rate=RATE) for i, n in enumerate(range(6, 60))
    ]
    pairs = list(make().stream(rows))
    assert {row.id: output.text for row, output in pairs} == {f"u{n}": text(n) for n in range(6, 60)}
    assert all(row.id == output.request_id for row, output in pairs)


def test_long_audio_is_cut_decoded_as_rows_and_joined_in_order(make):
    # 0.2 s windows; silence between the three parts is where the cuts fall.
    parts = [np.concatenate([clip(n, 150), np.zeros(30, np.float32)]) for n in (13, 34, 6)]
    (output,) = make().transcribe([(np.concatenate(parts), RATE)])
    assert output.text == " ".join(text(n) for n in (13, 34, 6))
    assert [s[2] for s in output.segments] == [text(n) for n in (13, 34, 6)]
    assert output.segments[0][0] == 0 and output.segments[-1][1] == pytest.approx(0.54)
    assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(output.segments))
    assert output.duration_s == pytest.approx(0.54)
    assert output.tokens == (expected_tokens(13) + expected_tokens(34) + expected_tokens(6),)


def test_a_failed_window_fails_its_utterance_and_says_so(make):
    model = FakeModel()
    model.poison = {34: ValueError("bad window")}
    parts = [np.concatenate([clip(n, 150), np.zeros(30, np.float32)]) for n in (13, 34, 6)]
    bad, good = make(model).transcribe([(np.concatenate(parts), RATE), (clip(20), RATE)])
    assert bad.error_stage == "decode" and bad.text is None and "bad window" in bad.error_message
    assert good.text == text(20)


def test_callers_who_own_the_loop(make):
    engine = make()
    ids = [engine.add_request(Utterance(f"u{n}", samples=clip(n), sample_rate=RATE)) for n in (13, 20, 6)]
    assert engine.has_work
    done = []
    while engine.has_work:
        done += engine.step()
    assert {o.request_id: o.text for o in done} == {i: text(int(i[1:])) for i in ids}
    engine.add_request((clip(27), RATE))
    assert [o.text for o in engine.run()] == [text(27)]


def test_admission_is_refused_with_a_reason(make):
    engine = make()
    engine.add_request(Utterance("a", samples=clip(13), sample_rate=RATE))
    with pytest.raises(OptionsError, match="'a' is being worked on already"):
        engine.add_request(Utterance("a", samples=clip(20), sample_rate=RATE))
    with pytest.raises(RequestError, match="'task'"):
        engine.add_request((clip(20), RATE), {"task": "translate"})
    with pytest.raises(OptionsError, match="in flight"):
        next(engine.transcribe([(clip(6), RATE)]))
    with pytest.raises(OptionsError, match="unknown decoding option"):
        engine.add_request((clip(20), RATE), {"beam": 3})
    assert [o.text for o in engine.run()] == [text(13)]


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (3, "got int"),
        (("a.wav",), "got a tuple of str"),
        ((clip(1), "16000"), "got a tuple of ndarray, str"),
        (None, "got NoneType"),
    ],
)
def test_items_of_unknown_shape_are_named(make, bad, found):
    with pytest.raises(OptionsError, match=f"item 0: expected a path.*{found}"):
        list(make().transcribe([bad]))


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("id", 5, "a string"),
        ("id", None, "a string"),
        ("audio", None, "a path"),
        ("offset", "1", "seconds as a number"),
        ("duration", True, "seconds as a number, or None"),
    ],
)
def test_fields_of_another_type_are_named(make, field, value, expected):
    row = replace(Utterance("a", "a.wav"), **{field: value})
    for ask in (lambda: list(make().transcribe([row])), lambda: make().add_request(row)):
        with pytest.raises(OptionsError, match=f"item 0: {field}: expected {expected}, got {value!r}"):
            ask()


def test_a_sample_rate_may_be_any_integer_type(make):
    assert [o.text for o in make().transcribe([(clip(13), np.int64(RATE))])] == [text(13)]


def test_one_path_is_not_a_list(make):
    with pytest.raises(OptionsError, match="expected a list of items"):
        list(make().transcribe("a.wav"))


def test_the_model_may_be_given_as_a_path(make, monkeypatch):
    asked = []
    engine = make()
    monkeypatch.setattr("oasr.engine.load_model", lambda spec, *_: asked.append(spec) or engine.model)
    Engine(model=Path("some/folder"), device="cpu", decode_method="fake_ar").close()
    assert asked == ["some/folder"]


def test_config_and_fields_do_not_mix():
    with pytest.raises(OptionsError, match="not both"):
        Engine(EngineConfig(), model="base")


def test_a_family_the_model_lacks_is_refused_at_construction(make):
    with pytest.raises(CapabilityError, match="it offers: fake_ctc"):
        make(FakeModel(families=("fake_ctc",)), decode_method="fake_ar")


@pytest.mark.parametrize("family", ["fake_ar", "fake_ctc"])
def test_batch_size_and_order_change_nothing(make, family):
    numbers = list(range(1, 50))
    seen = []
    for batch in (1, 7, 64):
        engine = make(decode_method=family, max_batch_size=batch)
        items = [(clip(n, 30 + (n * 37) % 150), RATE) for n in numbers]
        seen.append({n: o.text for n, o in zip(numbers, engine.transcribe(items), strict=True)})
        numbers = numbers[::-1]
    assert seen[0] == seen[1] == seen[2]


def test_digital_silence_is_an_empty_transcript_without_a_decode(make):
    model = FakeModel()
    outputs = list(make(model).transcribe([(np.zeros(900, np.float32), RATE), (clip(13), RATE)]))
    assert [o.text for o in outputs] == ["", text(13)]
    assert outputs[0].ok and outputs[0].finish_reason == "stop" and outputs[0].segments == ()
    assert sum(model.batches) == 1


def test_a_silent_row_has_the_language_that_is_known_without_hearing(make):
    silence = (np.zeros(300, np.float32), RATE)
    model = FakeModel()
    model.stated_language = lambda options: options.language or "en"
    assert [o.language for o in make(model).transcribe([silence])] == ["en"]
    model.encoder_options = ("language",)
    assert [o.language for o in make(model).transcribe([silence], {"language": "de"})] == ["de"]


def test_failures_and_silence_come_out_while_the_list_is_still_read(make):
    taken = itertools.count()
    last = [0]

    def endless():
        while True:
            last[0] = next(taken)
            yield (
                RowFailure(f"r{last[0]}", 0, "manifest", "bad")
                if last[0] % 2
                else (np.zeros(9, np.float32), RATE)
            )

    outputs = make().transcribe(endless())
    for _ in range(20):
        next(outputs)
    assert last[0] < 250
    outputs.close()


def test_silence_beside_speech_keeps_the_speech(make):
    audio = np.concatenate([np.zeros(600, np.float32), clip(13, 150), np.zeros(600, np.float32)])
    (output,) = make().transcribe([(audio, RATE)])
    assert output.text == text(13)
