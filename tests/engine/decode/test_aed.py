"""Greedy Whisper decoding against transformers, token for token."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.whisper_checkpoints import (
    IDS,
    LANGUAGES,
    generation_config,
    oracle,
    oracle_logits,
    oracle_of_ctranslate2,
    write_hf,
)
from oasr import DecodingOptions, Engine, EngineConfig, Utterance
from oasr.decode.groups import Row
from oasr.errors import OptionsError, RequestError
from oasr.types import Hypothesis, Request
from transformers import GenerationConfig

RATE = 16000
SOT, EOT = IDS["<|startoftranscript|>"], IDS["<|endoftext|>"]
NO_TIMESTAMPS = IDS["<|notimestamps|>"]


@pytest.fixture(scope="module")
def reference():
    return oracle(seed=5)


@pytest.fixture(scope="module")
def folder(reference, tmp_path_factory):
    return str(write_hf(reference, tmp_path_factory.mktemp("aed"), "safetensors", generation_config()))


def engine(folder, **config):
    return Engine(EngineConfig(**{"model": folder, "device": "cpu", "dtype": "float32", **config}))


def noise(seed: int, seconds: float = 0.3) -> np.ndarray:
    """Loud enough for varied features, a clip within the tiny model's 0.4 s window."""
    return np.random.default_rng(seed).normal(0, 0.2, round(RATE * seconds)).astype(np.float32)


def features(model, samples):
    window = model.frontend.window_samples(len(samples))
    padded = torch.zeros(1, window)
    padded[0, : len(samples)] = torch.from_numpy(samples)
    return model.frontend(padded, torch.tensor([len(samples)]))[0]


def greedy(reference, mel, prompt, suppress, begin, limit):
    """The shortest correct greedy loop: everything is computed again for every token."""
    tokens, score = list(prompt), 0.0
    while True:
        logits = oracle_logits(reference, mel, torch.tensor([tokens]))[0, -1].double()
        logits[list(suppress)] = -torch.inf
        if len(tokens) == len(prompt):
            logits[list(begin)] = -torch.inf
        best = int(logits.argmax())
        score += float(logits.log_softmax(-1)[best])
        if best == EOT or len(tokens) - len(prompt) == limit:
            return tuple(tokens[len(prompt) :]), score
        tokens.append(best)
        if len(tokens) - len(prompt) == limit:
            return tuple(tokens[len(prompt) :]), score


def detect(reference, mel):
    ids = [IDS[f"<|{code}|>"] for code in LANGUAGES]
    probs = oracle_logits(reference, mel, torch.tensor([[SOT]]))[0, -1][ids].softmax(-1)
    return LANGUAGES[int(probs.argmax())], float(probs.max())


CASES = [
    DecodingOptions(),
    DecodingOptions(language="de"),
    DecodingOptions(language="Chinese", task="translate"),
    DecodingOptions(prompt="a few words before"),
    DecodingOptions(language="en", prompt="x", max_new_tokens=3),
    DecodingOptions(max_new_tokens=1),
]


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_tokens_scores_and_languages_equal_transformers(reference, folder, batch):
    with engine(folder, max_batch_size=batch) as ours:
        rows = [
            Utterance(f"u{i}-{k}", samples=noise(10 * i + k, 0.1 + 0.05 * k), sample_rate=RATE)
            for i in range(len(CASES))
            for k in range(4)
        ]
        outputs = {}
        for i, options in enumerate(CASES):
            for output in ours.transcribe(rows[4 * i : 4 * i + 4], options):
                outputs[output.request_id] = output
        for row in rows:
            options = CASES[int(row.id[1 : row.id.index("-")])]
            mel = features(ours.model, row.samples)
            language, probability = detect(reference, mel)
            prompt = ours.model.prompt_tokens(options, language)
            limit = min(options.max_new_tokens or 448, 24 - len(prompt))
            tokens, score = greedy(
                reference, mel, prompt, ours.model.suppress_ids, ours.model.begin_suppress_ids, limit
            )
            got = outputs[row.id]
            assert got.tokens == (tokens,)
            assert got.scores[0] == pytest.approx(score, abs=1e-3)
            assert got.finish_reason == ("length" if len(tokens) == limit else "stop")
            if options.language is None:
                assert (got.language, got.language_probability) == (
                    language,
                    pytest.approx(probability, abs=1e-4),
                )
            else:
                assert (got.language, got.language_probability) == (
                    {"de": "de", "Chinese": "zh", "en": "en"}[options.language],
                    None,
                )


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ({"language": "german", "task": "transcribe", "forced_decoder_ids": None}, ["de", "transcribe"]),
        ({"language": "<|de|>", "task": "translate"}, ["de", "translate"]),
        ({"task": "translate"}, [None, "translate"]),
        ({"forced_decoder_ids": [[1, IDS["<|de|>"]], [2, IDS["<|translate|>"]]]}, ["de", "translate"]),
        ({}, [None, "transcribe"]),
    ],
)
def test_what_generation_config_says_of_language_and_task(reference, tmp_path, stated, wanted):
    folder = write_hf(reference, tmp_path, "safetensors", generation_config(**stated))
    said = GenerationConfig(**generation_config(**stated))
    said.return_timestamps = False
    clip, (settled, task) = noise(3), wanted
    with engine(str(folder)) as ours:
        model = ours.model
        mel = features(model, clip)
        theirs = reference._retrieve_init_tokens(
            mel.transpose(1, 2), 1, said, reference.config, mel.shape[1], {}
        )
        language = settled or detect(reference, mel)[0]
        prompt = model.prompt_tokens(DecodingOptions(), language)
        assert prompt == tuple(theirs[0].tolist())
        assert prompt == (SOT, IDS[f"<|{language}|>"], IDS[f"<|{task}|>"], NO_TIMESTAMPS)
        silence = np.zeros(RATE // 4, np.float32)
        plain, silent, asked = ours.transcribe(
            [
                Utterance("plain", samples=clip, sample_rate=RATE),
                Utterance("silent", samples=silence, sample_rate=RATE),
                Utterance("asked", samples=clip, sample_rate=RATE, language="zh", task="transcribe"),
            ]
        )
        assert (plain.language, silent.language, asked.language) == (language, settled, "zh")
        assert (plain.language_probability is None) == (settled is not None)
        lists = model.suppress_ids, model.begin_suppress_ids, 20
        assert plain.tokens[0] == greedy(reference, mel, prompt, *lists)[0]
        override = (SOT, IDS["<|zh|>"], IDS["<|transcribe|>"], NO_TIMESTAMPS)
        assert asked.tokens[0] == greedy(reference, mel, override, *lists)[0]


def test_rows_of_one_batch_may_differ_in_everything(folder):
    rows = [
        Utterance(
            f"u{i}",
            samples=noise(i, 0.05 + 0.01 * i),
            sample_rate=RATE,
            language=o.language,
            task=o.task,
            prompt=o.prompt,
        )
        for i, o in enumerate(CASES * 3)
    ]
    with engine(folder, max_batch_size=1) as ours:
        alone = [(o.tokens, o.language) for o in ours.transcribe(rows)]
    with engine(folder, max_batch_size=18) as ours:
        together = [(o.tokens, o.language) for o in ours.transcribe(rows)]
        shuffled = dict(zip([17, 3, 9], ours.transcribe([rows[i] for i in (17, 3, 9)]), strict=True))
    assert together == alone
    assert {i: (o.tokens, o.language) for i, o in shuffled.items()} == {i: alone[i] for i in (17, 3, 9)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (DecodingOptions(language="xx"), ["'xx'", "4", "zh"]),
        (DecodingOptions(n_best=2), ["at most 1"]),
    ],
)
def test_what_the_checkpoint_cannot_do_is_refused_at_admission(folder, options, words):
    with engine(folder) as ours:
        with pytest.raises(RequestError) as caught:
            ours.add_request((noise(0), RATE), options)
        assert all(word in str(caught.value) for word in words), str(caught.value)
        (output,) = ours.transcribe([(noise(0), RATE)], options)
        assert output.error_stage == "admission"


def strategy_of(folder, **options):
    return engine(folder, decode_options=options).strategy


def clip_of(seconds: float, attempt: int = 0) -> Request:
    return Request("a", np.ones(round(RATE * seconds), np.float32), RATE, attempt=attempt)


def test_windows_follow_the_clip_alone_under_auto(folder):
    strategy = strategy_of(folder, window="auto", window_pad_s=0.1, window_round_s=0.1)
    sizes = {s: strategy.window_samples(clip_of(s)) / RATE for s in (0.01, 0.05, 0.1, 0.15, 0.4)}
    assert sizes == {0.01: 0.2, 0.05: 0.2, 0.1: 0.2, 0.15: pytest.approx(0.3), 0.4: 0.4}
    assert strategy.window_samples(clip_of(0.1, attempt=1)) / RATE == 0.4
    assert strategy_of(folder).window_samples(clip_of(0.1)) / RATE == 0.4


@pytest.mark.parametrize(
    ("hypothesis", "doubtful"),
    [
        (Hypothesis((72, 105), -0.5, 0.9), False),
        (Hypothesis((72, 105), -0.5, 0.9, "length"), True),
        (Hypothesis((72, 105), -9.0, 0.05), True),
        (Hypothesis((72, 105, 33) * 30, -5.0, 0.9), True),
        (Hypothesis(tuple(range(40, 90)), -5.0, 0.9), True),
        (Hypothesis((), -0.2, None), False),
    ],
)
def test_a_doubtful_short_window_is_decoded_again_in_full(folder, hypothesis, doubtful):
    strategy = strategy_of(folder, window="auto", window_pad_s=0.1, window_round_s=0.1)
    again = strategy.reconsider(clip_of(0.1), (hypothesis,))
    assert (again is not None) == doubtful
    if again is not None:
        assert again == replace(clip_of(0.1), attempt=1)
        assert strategy.reconsider(again, (hypothesis,)) is None
    assert strategy.reconsider(clip_of(0.4), (hypothesis,)) is None
    assert strategy_of(folder).reconsider(clip_of(0.1), (hypothesis,)) is None


def test_no_speech_needs_both_a_high_probability_and_an_unlikely_text(folder):
    strategy = strategy_of(folder)

    def tokens(no_speech, score):
        row = Row(clip_of(0.1), 9, tokens=[72, 73], score=score, log_probs=[-1.0, -1.0], finish_reason="stop")
        row.facts.update(language="en", no_speech=no_speech)
        return strategy.hypothesis(row).tokens

    assert tokens(0.9, -6.0) == ()
    assert tokens(0.9, -1.0) == (72, 73)
    assert tokens(0.2, -6.0) == (72, 73)
    strategy = strategy_of(folder, no_speech_threshold="none")
    assert tokens(0.9, -6.0) == (72, 73)


def test_no_speech_probability_is_read_after_the_start_token(reference, folder):
    with engine(folder) as ours:
        mel = features(ours.model, noise(3))
        encoded = ours.model.encode_offline(mel, torch.tensor([mel.shape[1]]))
        requests = [Request("a", noise(3), RATE, o) for o in (DecodingOptions(language="de", prompt="abc"),)]
        start = ours.strategy.prefill(encoded, requests)
        prompt = ours.model.prompt_tokens(requests[0].options)
        upto = prompt.index(SOT) + 1
        logits = oracle_logits(reference, mel, torch.tensor([prompt[:upto]]))[0, -1]
        expected = float(logits.softmax(-1)[IDS["<|nospeech|>"]])
        assert start.rows[0].facts["no_speech"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.weights
def test_real_weights_give_the_tokens_of_transformers(tiny_en_dir, demo_manifest):
    reference = oracle_of_ctranslate2(tiny_en_dir)
    rows = [json.loads(line) for line in demo_manifest.read_text().splitlines()]
    with engine("tiny.en") as ours:
        outputs = list(ours.transcribe([str(demo_manifest.parent / r["audio"]) for r in rows]))
        from oasr.audio.waveform import read_waveforms

        for row, output in zip(rows, outputs, strict=True):
            source = Utterance("a", str(demo_manifest.parent / row["audio"]))
            mel = features(ours.model, read_waveforms(source, RATE)[0][1].samples)
            prompt = list(ours.model.prompt_tokens(DecodingOptions()))
            tokens = torch.tensor([prompt + list(output.tokens[0])])
            with torch.inference_mode():
                logits = reference(input_features=mel.transpose(1, 2), decoder_input_ids=tokens).logits[0]
            # Teacher-forced, each of our tokens must be the argmax of the filtered logits.
            logits = logits[len(prompt) - 1 :].clone()
            logits[:, list(ours.model.suppress_ids)] = -torch.inf
            logits[0, list(ours.model.begin_suppress_ids)] = -torch.inf
            assert tuple(logits.argmax(-1).tolist()) == (*output.tokens[0], ours.model.eos_id)


def test_a_row_whose_logits_are_no_numbers_fails_alone(folder):
    """Features of such samples overflow; the largest of NaNs would be token 0 until the limit."""
    clips = [noise(1), noise(2) * np.float32(1e30), noise(3)]
    with engine(folder) as ours:
        alone = [o.tokens for i in (0, 2) for o in ours.transcribe([(clips[i], RATE)])]
        good, bad, also_good = ours.transcribe([(clip, RATE) for clip in clips])
    assert (bad.error_stage, bad.text) == ("decode", None) and "not a number" in bad.error_message
    assert [good.tokens, also_good.tokens] == alone


def test_a_loop_in_a_short_window_is_cut_off_and_decoded_again_in_full(folder):
    clips = [(noise(i, 0.1), RATE) for i in range(6)]
    auto = {"window": "auto", "window_pad_s": 0.1, "window_round_s": 0.1}
    with engine(folder) as ours:
        full = [o.tokens for o in ours.transcribe(clips, {"language": "de"})]
    with engine(
        folder, decode_options={**auto, "retry_tokens_per_s": 0.0, "retry_mean_log_prob": -99.0}
    ) as ours:
        seen = []
        reconsider = ours.strategy.reconsider

        def watch(request, hypotheses):
            again = reconsider(request, hypotheses)
            seen.append((len(hypotheses[0].tokens), again is not None))
            return again

        ours.strategy.reconsider = watch
        again = [o.tokens for o in ours.transcribe(clips, {"language": "de"})]
    # A window of its own is trusted with 8 tokens here; a row that wants a ninth stops there.
    first = [count for count, doubted in seen if doubted]
    assert first and max(first) <= 9
    assert len(seen) == len(clips) + len(first)
    doubted = [i for i, tokens in enumerate(full) if len(tokens[0]) > 9]
    assert all(again[i] == full[i] for i in doubted)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window_pad_s", "-1"),
        ("window_pad_s", "inf"),
        ("window_round_s", "0"),
        ("retry_tokens_per_s", "-2"),
        ("no_speech_threshold", "1.5"),
    ],
)
def test_options_outside_their_range_are_refused_at_construction(folder, name, value):
    with pytest.raises(OptionsError, match=name):
        engine(folder, decode_options={name: value})


@pytest.mark.parametrize(("pad", "round_s"), [(0.0, 0.02), (0.001, 0.03), (0.05, 0.0333)])
def test_any_window_is_whole_frames_and_long_enough_to_analyse(folder, pad, round_s):
    auto = {"window": "auto", "window_pad_s": pad, "window_round_s": round_s, "retry_mean_log_prob": -99.0}
    with engine(folder, decode_options=auto) as ours:
        for seconds in (0.03, 0.1, 0.234):
            window = ours.strategy.window_samples(clip_of(seconds))
            assert window % 320 == 0 and window >= max(800, round(RATE * seconds))
        assert all(o.ok for o in ours.transcribe([(noise(1, s), RATE) for s in (0.03, 0.1, 0.234)]))


@pytest.mark.weights
def test_loud_noise_without_speech_gives_no_text(shared_speech):
    noise_file = str(shared_speech / "awkward" / "noise_no_speech.wav")
    for dtype in ("float32", "auto"):
        with engine("tiny.en", dtype=dtype) as ours:
            (output,) = ours.transcribe([noise_file])
            assert (output.text, output.confidence, output.finish_reason) == ("", None, "stop")
