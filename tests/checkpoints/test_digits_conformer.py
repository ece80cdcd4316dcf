"""A trained checkpoint: real speech in, the right words at the right times out, by every CTC family."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from statistics import median

import pytest
import torch
from oasr.config import EngineConfig
from oasr.engine import Engine
from oasr.manifest import open_inputs
from oasr.scoring.wer import Scorer
from oasr.types import DecodingOptions

WAYS = [("ctc_cuda", {"beam_size": 1}), ("ctc_cuda", {"beam_size": 10}), ("ctc_aed_rescoring", {})]


@pytest.fixture(scope="module")
def rows(repo_root: Path) -> list:
    return list(open_inputs([str(repo_root / "manifests" / "digits.jsonl")]))


def engine(repo_root: Path, method: str, options: dict, device: str = "cpu", batch: int = 16) -> Engine:
    folder = repo_root / "tests" / "checkpoints" / "digits-conformer"
    config = EngineConfig(
        model=str(folder), device=device, decode_method=method, decode_options=options, max_batch_size=batch
    )
    return Engine(config)


@pytest.mark.parametrize(("method", "options"), WAYS)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_real_digits_are_recognised_and_placed(repo_root, rows, method, options, device):
    scorer, off = Scorer("basic"), []
    with engine(repo_root, method, options, device) as loaded:
        for row, output in loaded.stream(rows, DecodingOptions(word_timestamps=True)):
            assert output.ok, output.error_message
            scorer.add(row.text, output.text, "en")
            known = [(join["text"], join["start"], join["end"]) for join in row.row["joins"]]
            if [word.word for word in output.words] == [text for text, *_ in known]:
                for word, (_, start, end) in zip(output.words, known, strict=True):
                    off += [abs(word.start - start), abs(word.end - end)]
    assert scorer.totals()["wer"].rate <= 3
    assert len(off) > 600 and median(off) <= 0.08


def test_the_text_does_not_depend_on_the_batch(repo_root, rows):
    texts = []
    for batch, order in ((1, rows), (7, rows[::-1]), (60, rows)):
        with engine(repo_root, "ctc_aed_rescoring", {}, batch=batch) as loaded:
            found = loaded.stream(order[:20] if order is rows else order[-20:], DecodingOptions(n_best=3))
            texts.append({row.id: (output.text, output.nbest_texts) for row, output in found})
    assert texts[0] == texts[1] == texts[2]


def test_the_strings_are_of_recordings_that_trained_nothing(repo_root, rows):
    folder = repo_root / "tests" / "checkpoints" / "digits-conformer"
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 3_000_000
    state = torch.load(folder / "final.pt", weights_only=True)
    assert {value.dtype for value in state.values()} == {torch.float16}
    words = list(itertools.chain.from_iterable(row.text.split() for row in rows))
    assert len(rows) == 60 and len(words) == 377 and len(set(words)) == 10
    lines = (repo_root / "manifests" / "digits.jsonl").read_text("utf-8").splitlines()
    assert all(set(json.loads(line)) == {"id", "audio", "text", "joins"} for line in lines)
