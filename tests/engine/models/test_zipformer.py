"""Zipformer against icefall's own results, and a batch against its rows."""

from __future__ import annotations

import pytest
import torch
from helpers.icefall_checkpoints import NAMES, golden, write_icefall
from oasr.checkpoints import load_model
from oasr.decode.alignment import FrameClock
from oasr.models.encoders.zipformer.basics import BiasNorm, swoosh_l, swoosh_r

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory):
    """Name of a golden configuration → the model, loaded once."""
    root, loaded = tmp_path_factory.mktemp("icefall"), {}

    def load(name: str):
        if name not in loaded:
            loaded[name] = load_model(str(write_icefall(root / name, name)), CPU, "float32")
        return loaded[name]

    return load


def padded(name: str, behind: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The inputs of a golden configuration as one batch, with `behind` more frames, and their lengths."""
    case = golden(name)
    batch = torch.full((len(case.frames), max(case.frames) + behind, 80), 3.0)
    for row, frames in enumerate(case.frames):
        batch[row, :frames] = case.features(row)
    return batch, torch.tensor(case.frames)


def test_golden_data_is_there() -> None:
    assert NAMES == ("causal", "zipformer")


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_log_probabilities_equal_icefalls(models, name: str) -> None:
    model, case = models(name), golden(name)
    assert model.load_report.missing == model.load_report.unexpected == ()
    for row, frames in enumerate(case.frames):
        out = model.forward_offline(case.features(row)[None], torch.tensor([frames]))
        assert out.lengths.tolist() == [len(case.log_probs[row])]
        assert case.log_probs[row].std() > 1
        torch.testing.assert_close(out.log_probs[0], case.log_probs[row], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("behind", [0, 1, 6, 37])
@torch.inference_mode()
def test_padding_does_not_touch_a_row(models, name: str, behind: int) -> None:
    """As one padded batch, as a GPU computes it; every stack ends in other groups of frames."""
    model, case = models(name), golden(name)
    hidden, lengths = model.encoder(*padded(name, behind))
    for row, wanted in enumerate(case.log_probs):
        assert lengths[row] == len(wanted)
        found = model.head(hidden[row, : len(wanted)]).log_softmax(-1)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_rows_of_a_batch_keep_their_bits_on_a_cpu(models, name: str) -> None:
    model = models(name)
    features, lengths = padded(name, 13)
    batch = model.encode_offline(features, lengths)
    for row, count in enumerate(batch.lengths.tolist()):
        alone = model.encode_offline(features[row : row + 1, : lengths[row]], lengths[row : row + 1])
        assert torch.equal(batch.hidden[row, :count], alone.hidden[0])


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_rows_too_short_for_a_frame_have_none(models, name: str) -> None:
    model = models(name)
    features, lengths = torch.randn(4, 60, 80), torch.tensor([0, 8, 9, 60])
    for found, counts in (
        model.encoder(features, lengths),
        (model.encode_offline(features, lengths).hidden, model.encode_offline(features, lengths).lengths),
    ):
        assert counts.tolist() == [0, 0, 1, 13]
        assert torch.isfinite(found).all() and found.shape[:2] == (4, 13)
    assert model.forward_offline(features[:, :8], torch.tensor([0, 0, 8, 8])).log_probs.shape == (4, 0, 12)


def test_the_clock_and_the_features_are_icefalls(models) -> None:
    model = models("zipformer")
    assert FrameClock.of(model).seconds_per_frame == pytest.approx(0.04)
    fbank = model.frontend.config
    assert (fbank.scale, fbank.high_hz, fbank.snip_edges, fbank.n_mels) == (1.0, -400.0, False, 80)
    _, frames = model.frontend(torch.zeros(1, 16000), torch.tensor([16000]))
    assert frames.tolist() == [100]


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@torch.inference_mode()
def test_other_compute_types_stay_close(tmp_path, dtype: str) -> None:
    model = load_model(str(write_icefall(tmp_path, "zipformer")), CPU, dtype)
    case = golden("zipformer")
    got = model.forward_offline(case.features(2)[None], torch.tensor([case.frames[2]])).log_probs[0]
    assert got.dtype == torch.float32
    assert 0 < (got - case.log_probs[2]).abs().mean() < 0.1


def test_activations_and_norm_by_hand() -> None:
    x = torch.tensor([-30.0, -1.0, 0.0, 4.0, 90.0], dtype=torch.float64)
    torch.testing.assert_close(swoosh_l(x), torch.logaddexp(x * 0, x - 4) - 0.08 * x - 0.035)
    torch.testing.assert_close(swoosh_r(x), torch.logaddexp(x * 0, x - 1) - 0.08 * x - 0.313261687)
    assert abs(float(swoosh_r(x)[2])) < 1e-8
    norm = BiasNorm(2)
    norm.bias.copy_(torch.tensor([1.0, 0.0]))
    norm.log_scale.fill_(0.5)
    expected = torch.tensor([[4.0, 4.0]]) * torch.tensor(0.5).exp() / (12.5**0.5)
    torch.testing.assert_close(norm(torch.tensor([[4.0, 4.0]])), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_a_gpu_batch_equals_icefalls(tmp_path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    device, case = torch.device("cuda"), golden(name)
    folder = write_icefall(tmp_path, name)
    features, lengths = padded(name, 21)
    found = load_model(str(folder), device, "float32").forward_offline(features.to(device), lengths)
    for row, wanted in enumerate(case.log_probs):
        assert found.lengths[row] == len(wanted)
        ours = found.log_probs[row, : len(wanted)].cpu()
        torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=0)
    half = load_model(str(folder), device, "float16").forward_offline(features.to(device), lengths)
    assert (half.log_probs[2, : len(wanted)].cpu() - wanted).abs().mean() < 0.05
