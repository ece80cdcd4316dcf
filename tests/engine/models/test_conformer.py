"""U2 and U2++ against WeNet's own results, and a batch against its rows."""

from __future__ import annotations

import pytest
import torch
from helpers.wenet_checkpoints import NAMES, golden, write_wenet
from oasr.checkpoints import load_model
from oasr.models.layers.frames import frame_masks

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory):
    """Name of a golden configuration → the model, loaded once."""
    root, loaded = tmp_path_factory.mktemp("wenet"), {}

    def load(name: str):
        if name not in loaded:
            loaded[name] = load_model(str(write_wenet(root / name, name)), CPU, "float32")
        return loaded[name]

    return load


def encoder_input(model, name: str, row: int) -> torch.Tensor:
    """(T, F) features as the model gets them, normalised."""
    features = golden(name).features(row)
    cmvn = model.config.cmvn
    return features if cmvn is None else cmvn(features)


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_log_probabilities_equal_wenets(models, name: str) -> None:
    model, case = models(name), golden(name)
    for row, frames in enumerate(case.frames):
        features = encoder_input(model, name, row)
        out = model.forward_offline(features[None], torch.tensor([frames]))
        assert out.lengths.tolist() == [len(case.log_probs[row])]
        assert case.log_probs[row].std() > 0.5
        torch.testing.assert_close(out.log_probs[0], case.log_probs[row], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_padding_does_not_touch_a_row(models, name: str) -> None:
    model, case = models(name), golden(name)
    width = max(case.frames) + 37
    batch = torch.full((len(case.frames), width, 16), 3.0)
    for row, frames in enumerate(case.frames):
        batch[row, :frames] = encoder_input(model, name, row)
    out = model.forward_offline(batch, torch.tensor(case.frames))
    for row, wanted in enumerate(case.log_probs):
        assert out.lengths[row] == len(wanted)
        torch.testing.assert_close(out.log_probs[row, : len(wanted)], wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_rows_too_short_for_a_frame_stay_finite(models, name: str) -> None:
    model = models(name)
    out = model.forward_offline(torch.randn(3, 60, 16), torch.tensor([0, 2, 60]))
    linear = model.config.encoder.subsampling == "linear"
    assert out.lengths[:2].tolist() == ([0, 2] if linear else [0, 0])
    assert torch.isfinite(out.log_probs).all()


def test_masks_hide_padding_and_later_blocks_and_always_leave_a_key() -> None:
    keep, mask = frame_masks(torch.tensor([0, 3, 5]), 5, CPU, chunk=2)
    assert keep.sum(1).tolist() == [0, 3, 5]
    assert mask[:, 0].sum(-1).tolist() == [[1] * 5, [2, 2, 3, 3, 3], [2, 2, 4, 4, 5]]
    assert frame_masks(torch.tensor([5, 5]), 5, CPU) == (None, None)
