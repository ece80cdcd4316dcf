"""CTC snapshots through the whole command: made-up weights, so the texts mean nothing but must agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile
from helpers.hf_ctc_checkpoints import clip, network, write_snapshot

LENGTHS = (80, 20080, 35120, 24240, 33201)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of up to 2.2 s, the first shorter than any frame, the others of whole pairs of frames."""
    root = tmp_path_factory.mktemp("clips")
    rows = []
    for number, n_samples in enumerate(LENGTHS):
        soundfile.write(root / f"{number}.wav", clip(number, n_samples), 16000, subtype="FLOAT")
        rows.append(json.dumps({"id": f"clip{number}", "audio": f"{number}.wav"}) + "\n")
    (root / "list.jsonl").write_text("".join(rows))
    return root / "list.jsonl"


@pytest.mark.parametrize("name", ["wav2vec2-group", "hubert", "bert", "parakeet"])
def test_texts_are_those_of_transformers_at_any_batch_size(
    oasr, manifest: Path, name: str, tmp_path: Path
) -> None:
    processor = write_snapshot(tmp_path, name)
    made: list[dict[str, dict]] = []
    for flags in (("--batch-size", 1), ("--batch-size", 64, "--word-timestamps")):
        done = oasr(
            "transcribe", manifest, "--model", tmp_path, "--dtype", "float32",
            "--decode-option", "beam_size=1", *flags,
        )  # fmt: skip
        assert done.code == 0, done.err
        made.append({row["id"]: row for row in done.rows})
    texts = {key: row["pred_text"] for key, row in made[0].items()}
    assert {key: row["pred_text"] for key, row in made[1].items()} == texts
    assert texts["clip0"] == ""
    reference = network(name)
    for number in range(1, len(LENGTHS)):
        samples = [clip(number, LENGTHS[number])]
        inputs = processor.feature_extractor(samples, sampling_rate=16000, return_tensors="pt")
        best = reference(**inputs).logits[0].argmax(-1)
        assert texts[f"clip{number}"] == processor.decode(best) != ""
    for row in made[1].values():
        assert [word["word"] for word in row["words"]] == row["pred_text"].split()
        assert all(0 <= w["start"] < w["end"] <= row["duration"] for w in row["words"])


def test_an_encoder_alone_is_one_message(oasr, manifest: Path, tmp_path: Path) -> None:
    write_snapshot(tmp_path, "wavlm")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["WavLMModel"]}))
    done = oasr("transcribe", manifest, "--model", tmp_path)
    assert done.code == 1 and "expected WavLMForCTC, found WavLMModel, which has no CTC" in done.err
