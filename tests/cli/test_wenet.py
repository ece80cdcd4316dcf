"""A WeNet folder through the whole command: made-up weights, so the texts mean nothing but must agree."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from helpers.wenet_checkpoints import write_wenet
from oasr.checkpoints import load_model
from torchaudio.compliance import kaldi

LENGTHS_S = (0.02, 0.7, 3.1, 1.9, 3.0, 5.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wenet(tmp_path_factory.mktemp("exp"), "u2pp")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise that swells and fades, at two sample rates, longest 5.5 s."""
    root = tmp_path_factory.mktemp("clips")
    rows = []
    for number, seconds in enumerate(LENGTHS_S):
        rate = 16000 if number % 2 else 8000
        count = int(seconds * rate)
        noise = np.random.RandomState(number).standard_normal(count) * 0.2
        swell = np.sin(np.arange(count) / rate * (3 + number)) ** 2
        soundfile.write(root / f"{number}.wav", noise * swell, rate, subtype="PCM_16")
        rows.append(json.dumps({"id": f"clip{number}", "audio": f"{number}.wav"}) + "\n")
    (root / "list.jsonl").write_text("".join(rows))
    return root / "list.jsonl"


def transcribed(oasr, manifest: Path, folder: Path, *flags: object) -> dict[str, dict]:
    done = oasr("transcribe", manifest, "--model", folder, "--dtype", "float32", *flags)
    assert done.code == 0, done.err
    return {row["id"]: row for row in done.rows}


def test_both_families_at_any_batch_size(oasr, manifest: Path, folder: Path) -> None:
    for method in ("ctc", "ctc_cuda", "ctc_aed_rescoring"):
        rows = transcribed(oasr, manifest, folder, "--decode-method", method, "--batch-size", 1)
        texts = {name: row["pred_text"] for name, row in rows.items()}
        assert texts["clip0"] == ""
        assert all(texts[f"clip{i}"] for i in range(1, len(LENGTHS_S)))
        again = transcribed(oasr, manifest, folder, "--decode-method", method, "--batch-size", 64)
        assert {name: row["pred_text"] for name, row in again.items()} == texts
    assert transcribed(oasr, manifest, folder).keys() == texts.keys()


def test_scores_options_and_word_times_come_out(oasr, manifest: Path, folder: Path) -> None:
    flags = ("--decode-method", "ctc_aed_rescoring", "--decode-option", "beam_size=4")
    rows = transcribed(oasr, manifest, folder, *flags, "--n-best", 3, "--word-timestamps")
    for row in rows.values():
        scores = [one["score"] for one in row["nbest"]]
        assert scores == sorted(scores, reverse=True) and len(scores) <= 3
        assert row["score"] == scores[0] and row["nbest"][0]["text"] == row["pred_text"]
        assert [word["word"] for word in row["words"]] == row["pred_text"].split()
        assert all(0 <= w["start"] < w["end"] <= row["duration"] for w in row["words"])
    plain = transcribed(oasr, manifest, folder, *flags)
    assert {n: r["pred_text"] for n, r in plain.items()} == {n: r["pred_text"] for n, r in rows.items()}


def test_the_best_path_is_that_of_the_features_by_hand(oasr, manifest: Path, folder: Path) -> None:
    model = load_model(str(folder), torch.device("cpu"), "float32")
    flags = ("--decode-method", "ctc_cuda", "--decode-option", "beam_size=1")
    rows = transcribed(oasr, manifest, folder, *flags)
    for number in (1, 3, 5):
        samples, rate = soundfile.read(manifest.parent / f"{number}.wav", dtype="float32")
        features = kaldi.fbank(
            torch.from_numpy(samples)[None] * 32768, num_mel_bins=16, dither=0.0, energy_floor=0.0,
            sample_frequency=rate,
        )  # fmt: skip
        with torch.inference_mode():
            out = model.forward_offline(model.config.cmvn(features)[None], torch.tensor([len(features)]))
        labels = torch.unique_consecutive(out.log_probs[0].argmax(-1)).tolist()
        assert rows[f"clip{number}"]["pred_text"] == model.tokenizer.decode([i for i in labels if i]).strip()


def test_what_the_model_cannot_do_is_one_message(oasr, manifest: Path, folder: Path, tmp_path: Path) -> None:
    done = oasr("transcribe", manifest, "--model", folder, "--language", "de")
    assert done.code == 2 and "no control for 'language'" in done.err
    done = oasr("transcribe", manifest, "--model", folder, "--decode-method", "aed")
    assert done.code == 2 and "it offers: ctc, ctc_aed_rescoring" in done.err
    bare = write_wenet(tmp_path / "bare", "conformer-bn", {"encoder": "branchformer"})
    done = oasr("transcribe", manifest, "--model", bare)
    assert done.code == 1 and "'branchformer': only conformer and transformer" in done.err
