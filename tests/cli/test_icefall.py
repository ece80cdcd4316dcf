"""An icefall folder through the whole command: made-up weights, so the texts mean nothing but must agree."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from helpers.hf_ctc_checkpoints import clip
from helpers.icefall_checkpoints import NAMES, TOKENS, write_icefall
from oasr.checkpoints import load_model
from torchaudio.compliance import kaldi

LENGTHS = (1000, 20000, 36001, 64000)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clips")
    rows = []
    for number, n_samples in enumerate(LENGTHS):
        soundfile.write(root / f"{number}.wav", clip(number, n_samples), 16000, subtype="FLOAT")
        rows.append(json.dumps({"id": f"clip{number}", "audio": f"{number}.wav"}) + "\n")
    (root / "list.jsonl").write_text("".join(rows))
    return root / "list.jsonl"


@pytest.mark.parametrize("name", NAMES)
def test_the_best_path_is_that_of_the_features_by_hand(
    oasr, manifest: Path, name: str, tmp_path: Path
) -> None:
    folder = write_icefall(tmp_path, name)
    made = []
    for flags in (("--batch-size", 1), ("--batch-size", 64, "--word-timestamps")):
        done = oasr(
            "transcribe", manifest, "--model", folder, "--dtype", "float32",
            "--decode-option", "beam_size=1", *flags,
        )  # fmt: skip
        assert done.code == 0, done.err
        made.append({row["id"]: row for row in done.rows})
    texts = {key: row["pred_text"] for key, row in made[0].items()}
    assert {key: row["pred_text"] for key, row in made[1].items()} == texts
    assert texts["clip0"] == ""
    model = load_model(str(folder), torch.device("cpu"), "float32")
    for number in range(1, len(LENGTHS)):
        features = kaldi.fbank(
            torch.from_numpy(clip(number, LENGTHS[number]))[None], num_mel_bins=80, dither=0.0,
            energy_floor=0.0, snip_edges=False, high_freq=-400.0,
        )  # fmt: skip
        with torch.inference_mode():
            out = model.forward_offline(features[None], torch.tensor([len(features)]))
        labels = torch.unique_consecutive(out.log_probs[0].argmax(-1)).tolist()
        spelt = "".join(TOKENS[label] for label in labels if label > 2).replace("▁", " ")
        assert texts[f"clip{number}"] == spelt.strip()
    assert any(texts.values())
    for row in made[1].values():
        assert [word["word"] for word in row["words"]] == row["pred_text"].split()
        starts = np.array([word["start"] for word in row["words"]])
        assert (np.diff(starts) >= 0).all()
