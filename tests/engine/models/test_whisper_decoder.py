"""The decoder surface: cached = uncached, left-padded = alone, merged = separate, all = transformers."""

from __future__ import annotations

import pytest
import torch
from helpers.whisper_checkpoints import IDS, generation_config, oracle, oracle_logits, write_hf
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.checkpoints import load_model
from oasr.models.interfaces import EncoderOutput, require_capability
from oasr.types import DecodingOptions

FRAMES = 40
CLOSE = {"atol": 1e-4, "rtol": 0}


@pytest.fixture(scope="module")
def reference():
    return oracle(seed=3)


@pytest.fixture(scope="module")
def model(reference, tmp_path_factory):
    folder = write_hf(reference, tmp_path_factory.mktemp("m"), "safetensors", generation_config())
    return load_model(str(folder), torch.device("cpu"), "float32")


def features_of(batch: int, frames: int = FRAMES, seed: int = 0) -> torch.Tensor:
    return torch.randn(batch, frames, 8, generator=torch.Generator().manual_seed(seed))


def encode(model, features: torch.Tensor) -> EncoderOutput:
    return model.encode_offline(features, torch.full((len(features),), features.shape[1]))


def tokens_of(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(256, (batch, length), generator=torch.Generator().manual_seed(seed))


def test_serves_the_aed_family(model) -> None:
    require_capability(model, "aed")
    assert model.default_decode_type == "aed" and model.max_positions == 24


def test_prompt_tokens_of_a_request(model) -> None:
    sot, en, de, zh, last = (IDS[f"<|{n}|>"] for n in ("startoftranscript", "en", "de", "zh", "notimestamps"))
    plain = model.prompt_tokens(DecodingOptions())
    assert plain == (sot, en, IDS["<|transcribe|>"], last)
    assert model.prompt_tokens(DecodingOptions(), "de")[1] == de  # what was detected
    assert model.prompt_tokens(DecodingOptions(language="zh"), "de")[1] == zh  # what was asked for
    long = model.prompt_tokens(DecodingOptions(prompt="x" * 99, task="translate"))
    assert long == (IDS["<|startofprev|>"], *b"x" * 11, sot, en, IDS["<|translate|>"], last)
    assert model.validate_language("GERMAN") == "de" and model.sot_id == sot


def test_prefill_and_steps_equal_transformers(model, reference) -> None:
    features, tokens = features_of(3), tokens_of(3, 12)
    expected = oracle_logits(reference, features, tokens)
    encoded = encode(model, features)
    logits, state = model.decoder.prefill(tokens[:, :4], encoded, capacity=12)
    assert logits.dtype == torch.float32 and state.rows == 3
    torch.testing.assert_close(logits, expected[:, 3], **CLOSE)
    for column in range(4, 12):
        logits = model.decoder.step(tokens[:, column], state)
        torch.testing.assert_close(logits, expected[:, column], **CLOSE)
    assert state.lens.tolist() == [12] * 3 and state.capacity == 12


def test_teacher_forcing_equals_steps(model) -> None:
    features, tokens = features_of(2), tokens_of(2, 10)
    encoded = encode(model, features)
    teacher = model.decoder.forward_teacher(tokens, encoded)
    logits, state = model.decoder.prefill(tokens[:, :1], encoded, capacity=10)
    for column in range(1, 10):
        torch.testing.assert_close(logits, teacher[:, column - 1], **CLOSE)
        logits = model.decoder.step(tokens[:, column], state)


def test_caches_grow_when_the_capacity_was_too_small(model) -> None:
    tokens, encoded = tokens_of(2, 12), encode(model, features_of(2))
    roomy = model.decoder.prefill(tokens[:, :3], encoded, capacity=12)[1]
    tight = model.decoder.prefill(tokens[:, :3], encoded, capacity=1)[1]
    assert tight.capacity == 3
    for column in range(3, 12):
        wide = model.decoder.step(tokens[:, column], roomy)
        assert torch.equal(wide, model.decoder.step(tokens[:, column], tight))
    assert tight.capacity == 64


@settings(max_examples=15, deadline=None)
@given(lens=st.lists(st.integers(1, 8), min_size=1, max_size=4), steps=st.integers(0, 5))
def test_left_padded_prompts_equal_each_row_alone(model, lens: list[int], steps: int) -> None:
    width, rows = max(lens), len(lens)
    features, tokens = features_of(rows), tokens_of(rows, width + steps, seed=5)
    encoded = encode(model, features)
    padded = torch.full((rows, width), 77)
    for row, length in enumerate(lens):
        padded[row, width - length :] = tokens[row, :length]
    logits, state = model.decoder.prefill(padded, encoded, width, torch.tensor(lens))
    history = [logits]
    for i in range(steps):
        history.append(model.decoder.step(tokens[:, width + i], state))
    for row, length in enumerate(lens):
        alone = encoded.rows(torch.tensor([row]))
        single, own = model.decoder.prefill(tokens[row : row + 1, :length], alone, width)
        torch.testing.assert_close(history[0][row], single[0], **CLOSE)
        for i in range(steps):
            single = model.decoder.step(tokens[row : row + 1, width + i], own)
            torch.testing.assert_close(history[i + 1][row], single[0], **CLOSE)


def test_select_repeats_reorders_and_shares_nothing(model) -> None:
    tokens, encoded = tokens_of(3, 6), encode(model, features_of(3))
    _, state = model.decoder.prefill(tokens[:, :3], encoded, capacity=8)
    model.decoder.step(tokens[:, 3], state)
    index = torch.tensor([2, 0, 0])
    picked = model.decoder.select(state, index)
    expected = model.decoder.step(tokens[:, 4], state)
    actual = model.decoder.step(tokens[index, 4], picked)
    torch.testing.assert_close(actual, expected[index], **CLOSE)
    # Rows that came from one parent part ways without disturbing each other.
    parted = model.decoder.step(torch.tensor([1, 2, 3]), picked)
    again = model.decoder.step(tokens[:, 5], state)
    assert not torch.allclose(parted[1], parted[2], atol=1e-3)
    assert not torch.allclose(parted[0], again[2], atol=1e-3)


def test_a_rows_cache_takes_the_bytes_that_are_declared(model) -> None:
    hidden = encode(model, features_of(3))
    _, state = model.decoder.prefill(tokens_of(3, 4), hidden, 10)
    held = sum(x.nbytes for x in [*state.keys, *state.values, *state.cross])
    assert model.decoder.row_bytes(10, FRAMES // 2) == held // 3
    # A whole row: prompt and transcript fill the positions, the window is the one asked about.
    window = FRAMES * model.frontend.sample_rate // 100
    assert model.decoder_row_bytes(window, 999) == model.decoder.row_bytes(24, FRAMES // 2)
    assert model.decoder_row_bytes(window, 1) < model.decoder_row_bytes(window, 999)


def test_merged_rows_equal_separate_ones(model) -> None:
    """Different progress, different left padding, different capacity."""
    left, right = encode(model, features_of(2, seed=1)), encode(model, features_of(2, seed=2))
    first, second = tokens_of(2, 12, seed=1), tokens_of(2, 12, seed=2)

    def start():
        _, a = model.decoder.prefill(first[:, :5], left, 12)
        for column in (5, 6):
            model.decoder.step(first[:, column], a)
        _, b = model.decoder.prefill(second[:, :3], right, 4, torch.tensor([3, 2]))
        return a, b

    a, b = start()
    assert model.decoder.can_merge(a, b)
    both = model.decoder.merge(*start())
    assert both.lens.tolist() == [7, 7, 3, 3] and both.starts.tolist() == [0, 0, 0, 1]
    for i in range(4):
        separate = torch.cat(
            [model.decoder.step(first[:, 7 + i], a), model.decoder.step(second[:, 3 + i], b)]
        )
        joined = model.decoder.step(torch.cat([first[:, 7 + i], second[:, 3 + i]]), both)
        torch.testing.assert_close(joined, separate, **CLOSE)
    rest = model.decoder.select(both, torch.tensor([3, 2]))
    assert rest.width == 7 and rest.uniform  # the longer rows left, and so did their width
    torch.testing.assert_close(
        model.decoder.step(second[[1, 0], 8], rest), model.decoder.step(second[:, 8], b)[[1, 0]], **CLOSE
    )


def test_windows_of_different_width_merge_through_a_mask(model) -> None:
    short, full = encode(model, features_of(2, 16)), encode(model, features_of(1))
    tokens = tokens_of(3, 6)
    _, a = model.decoder.prefill(tokens[:2, :3], short, 8)
    _, b = model.decoder.prefill(tokens[2:, :3], full, 8)
    for states in ((a, b), (b, a)):
        both = model.decoder.merge(*(model.decoder.select(s, torch.arange(s.rows)) for s in states))
        order = [0, 1, 2] if states[0] is a else [2, 0, 1]
        assert sorted(both.cross_lens.tolist()) == [8, 8, 20]
        logits = model.decoder.step(tokens[order, 3], both)
        own = [model.decoder.select(a, torch.arange(2)), model.decoder.select(b, torch.arange(1))]
        separate = torch.cat(
            [model.decoder.step(tokens[:2, 3], own[0]), model.decoder.step(tokens[2:, 3], own[1])]
        )
        torch.testing.assert_close(logits, separate[order], **CLOSE)
    only_full = model.decoder.select(both, torch.tensor([0]))
    assert only_full.cross_lens is None  # no mask once every row uses the whole window


def test_padded_encoder_rows_equal_their_own_window(model) -> None:
    """Two windows in one rectangle: the shorter row's result is that of its own width."""
    features = features_of(2)
    features[1, 16:] = 9.0  # what a batch pads with must not matter
    encoded = model.encode_offline(features, torch.tensor([FRAMES, 16]))
    alone = encode(model, features[1:, :16])
    assert encoded.lengths.tolist() == [20, 8]
    torch.testing.assert_close(encoded.hidden[1, :8], alone.hidden[0], **CLOSE)
    tokens = tokens_of(2, 4)
    logits, state = model.decoder.prefill(tokens, encoded, 6)
    expected, own = model.decoder.prefill(tokens[1:], alone, 6)
    torch.testing.assert_close(logits[1:], expected, **CLOSE)
    torch.testing.assert_close(
        model.decoder.step(tokens[:, 0], state)[1:], model.decoder.step(tokens[1:, 0], own), **CLOSE
    )


def test_cross_attention_weights(model, reference) -> None:
    features, tokens = features_of(3), tokens_of(3, 5)
    encoded = encode(model, features)
    with torch.inference_mode():
        out = reference(
            input_features=features.transpose(1, 2), decoder_input_ids=tokens, output_attentions=True
        )
    every = [(layer, head) for layer in range(3) for head in range(4)]
    for heads in (every, [(2, 3), (0, 1), (2, 0)], [(0, 2)]):
        weights = model.decoder.cross_attention(tokens, model.decoder.open_windows(encoded), heads)
        assert weights.shape == (3, len(heads), 5, 20) and weights.dtype == torch.float32
        for i, (layer, head) in enumerate(sorted(heads)):
            torch.testing.assert_close(weights[:, i], out.cross_attentions[layer][:, head], **CLOSE)


def test_cross_attention_of_rows_that_left_their_batch(model) -> None:
    """Windows of two widths, taken out of a state and joined; padded on the right, as rows of one forward."""
    short, full = encode(model, features_of(2, 16)), encode(model, features_of(1))
    tokens, heads = tokens_of(3, 6), [(0, 1), (2, 3)]
    _, a = model.decoder.prefill(tokens[:2, :3], short, 8)
    _, b = model.decoder.prefill(tokens[2:, :3], full, 8)
    state = model.decoder.merge(a, b)
    picked = [model.decoder.windows(state, torch.tensor([i])) for i in (2, 0)]
    model.decoder.select(state, torch.tensor([1]))
    both = picked[0].join(picked[1])
    assert both.lengths.tolist() == [20, 8]
    weights = model.decoder.cross_attention(tokens[[2, 0]], both, heads)
    alone = model.decoder.cross_attention(tokens[2:], model.decoder.open_windows(full), heads)
    torch.testing.assert_close(weights[:1], alone, **CLOSE)
    windows = model.decoder.open_windows(short.rows(torch.tensor([0])))
    alone = model.decoder.cross_attention(tokens[:1, :4], windows, heads)
    torch.testing.assert_close(weights[1:, :, :4, :8], alone, **CLOSE)
    assert (weights[1, :, :, 8:] == 0).all()


def test_the_probe_is_the_logits_after_its_column(model) -> None:
    tokens, encoded = tokens_of(2, 6), encode(model, features_of(2))
    teacher = model.decoder.forward_teacher(tokens, encoded)
    last, probed, _ = model.decoder.prefill_probed(tokens, encoded, 6, torch.tensor([6, 6]), 2)
    torch.testing.assert_close(last, teacher[:, 5], **CLOSE)
    torch.testing.assert_close(probed, teacher[:, 2], **CLOSE)


def test_positions_end(model) -> None:
    encoded = encode(model, features_of(1))
    with pytest.raises(ValueError, match="24 positions"):
        model.decoder.prefill(tokens_of(1, 25), encoded, 30)
    with pytest.raises(ValueError, match="24 positions"):
        model.decoder.forward_teacher(tokens_of(1, 25), encoded)
    _, state = model.decoder.prefill(tokens_of(1, 24), encoded, 24)
    # A finished row may be carried along past the end; it must not break the rows beside it.
    assert torch.isfinite(model.decoder.step(torch.tensor([1]), state)).all()


def test_the_encoder_window_is_checked(model) -> None:
    for frames in (0, 15, 42):
        with pytest.raises(ValueError, match="expected an even number up to 40"):
            encode(model, features_of(1, frames))


def test_states_of_other_models_do_not_merge(model, tmp_path) -> None:
    folder = write_hf(oracle(decoder_layers=1), tmp_path, "safetensors", generation_config())
    other = load_model(str(folder), torch.device("cpu"), "float32")
    tokens = tokens_of(1, 2)
    _, a = model.decoder.prefill(tokens, encode(model, features_of(1)), 4)
    _, b = other.decoder.prefill(tokens, encode(other, features_of(1)), 4)
    assert not model.decoder.can_merge(a, b)
    with pytest.raises(ValueError, match="cannot be merged"):
        model.decoder.merge(a, b)


def test_a_row_does_not_depend_on_its_batch(model) -> None:
    features, tokens = features_of(7), tokens_of(7, 8)
    whole = model.decoder.forward_teacher(tokens, encode(model, features))
    for row in range(7):
        one = slice(row, row + 1)
        alone = model.decoder.forward_teacher(tokens[one], encode(model, features[one]))
        torch.testing.assert_close(whole[one], alone, **CLOSE)
