"""The recipe of the digits checkpoint: its strings, its labels, and a folder that loads as it was saved."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from oasr.checkpoints import load_model
from oasr.features.cmvn import GlobalCmvn
from oasr.features.kaldi_fbank import KaldiFbank


@pytest.fixture(scope="module")
def recipe(repo_root: Path):
    """The two scripts as modules."""
    sys.path.insert(0, str(repo_root / "ci" / "fixtures"))
    try:
        import digit_data
        import train_digits

        yield digit_data, train_digits
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def clips(recipe):
    """Thirty digits of three speakers: a tone each, louder for a higher digit."""
    data, _ = recipe
    samples = [
        (np.sin(np.arange(1500 + 90 * n) * 0.2) * 0.01 * (1 + n % 10)).astype(np.float32) for n in range(30)
    ]
    return data.Clips(samples, np.arange(30) % 10, np.arange(30) // 10)


@pytest.mark.parametrize("augment", [False, True])
def test_strings_are_reproducible_and_know_their_words(recipe, clips, augment: bool) -> None:
    data, _ = recipe
    for seed in range(20):
        string = data.compose(clips, np.random.RandomState(seed), augment)
        again = data.compose(clips, np.random.RandomState(seed), augment)
        assert np.array_equal(string.samples, again.samples) and string.words == again.words
        assert 1 <= len(string.words) <= 12 and len(string.text.split()) == len(string.words)
        assert string.samples.dtype == np.float32 and np.abs(string.samples).max() <= 1
        ends = [0.0]
        for digit, start, end in string.words:
            assert ends[-1] <= start < end <= len(string.samples) / data.RATE
            ends.append(end)
            if not augment:
                part = string.samples[round(start * data.RATE) : round(end * data.RATE)]
                assert np.abs(part).max() == pytest.approx(0.01 * (1 + digit), rel=0.02)


def test_labels_stand_in_order_where_the_words_are(recipe, clips) -> None:
    data, train = recipe
    for seed in range(20):
        string = data.compose(clips, np.random.RandomState(seed), True)
        labels, frames = train.labels_of(string)
        text = "".join(train.UNITS[i] for i in labels).replace("▁", " ").strip()
        assert text == string.text
        assert all(a < b for a, b in pairwise(frames))
        for (_, start, end), mark, last in zip(string.words, frames[::3], frames[2::3], strict=True):
            assert abs(mark + 1 - start / 0.04) < 3 and abs(last + 1 - end / 0.04) < 3


def test_a_saved_model_loads_as_it_was(recipe, clips, tmp_path: Path) -> None:
    data, train = recipe
    torch.manual_seed(0)
    model, config = train.build(torch.device("cpu"))
    stats = {"mean_stat": [500.0] * 40, "var_stat": [3000.0] * 40, "frame_num": 100}
    cmvn = GlobalCmvn.from_sums(stats["mean_stat"], stats["var_stat"], stats["frame_num"])
    model.frontend = KaldiFbank(model.config.fbank, cmvn)
    train.save(model, config, stats, tmp_path / "digits")
    assert sum(file.stat().st_size for file in (tmp_path / "digits").iterdir()) < 3_000_000
    loaded = load_model(str(tmp_path / "digits"), torch.device("cpu"), "float32")
    assert loaded.load_report.unexpected == () and loaded.reverse_weight == 0.3
    batch = train.collate([data.compose(clips, np.random.RandomState(3), True)])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
        wanted, got = (
            m.eval().forward_offline(*m.frontend(batch.samples, batch.lengths)).log_probs
            for m in (model, loaded)
        )
    torch.testing.assert_close(got, wanted, atol=1e-4, rtol=0)
    said = [i for i in batch.labels[0].tolist() if i >= 0]
    assert loaded.tokenizer.decode(said) == " " + batch.texts[0]


def test_steps_lower_the_loss(recipe, clips) -> None:
    data, train = recipe
    torch.manual_seed(0)
    model, _ = train.build(torch.device("cpu"))
    strings = [data.compose(clips, np.random.RandomState(seed), False) for seed in range(12)]
    batch = train.collate(sorted(strings, key=lambda string: len(string.samples))[:2])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        loss = train.loss_of(model, batch, np.random.RandomState(0))
        optimizer.zero_grad()
        loss["sum"].backward()
        optimizer.step()
        losses.append(loss["sum"].item())
    assert all(p.grad is not None for p in model.parameters())
    assert losses[-1] < losses[0]
