"""Teacher-forced scores of the attention decoders against WeNet's rescoring."""

from __future__ import annotations

import pytest
import torch
from helpers.wenet_checkpoints import NAMES, golden, write_wenet
from oasr.checkpoints import load_model
from oasr.models.conformer_config import DecoderConfig
from oasr.models.decoders.bitransformer import BiTransformerDecoder, Memory

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory):
    """Name of a golden configuration → the model and its encoder output for all utterances at once."""
    root, known = tmp_path_factory.mktemp("wenet"), {}

    def encode(name: str):
        if name not in known:
            model, case = load_model(str(write_wenet(root / name, name)), CPU, "float32"), golden(name)
            batch = torch.zeros(len(case.frames), max(case.frames), 16)
            for row, frames in enumerate(case.frames):
                features = case.features(row)
                batch[row, :frames] = features if model.config.cmvn is None else model.config.cmvn(features)
            known[name] = model, model.encode_offline(batch, torch.tensor(case.frames))
        return known[name]

    with torch.inference_mode():
        yield encode


def padded(nbests: list[list[list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([[len(h) for h in nbest] for nbest in nbests])
    tokens = torch.full((*lengths.shape, int(lengths.max())), 7)
    for row, nbest in enumerate(nbests):
        for rank, hypothesis in enumerate(nbest):
            tokens[row, rank, : len(hypothesis)] = torch.tensor(hypothesis)
    return tokens, lengths


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_fused_scores_equal_wenets(encoded, name: str) -> None:
    model, out = encoded(name)
    cases = golden(name).cases
    tokens, lengths = padded([case["nbest"] for case in cases])
    memory = Memory.of(out.hidden, out.lengths)
    left = model.decoder.score(memory, tokens, lengths)
    right = torch.zeros_like(left) if model.decoder.right is None else None
    right = model.decoder.score(memory, tokens, lengths, reverse=True) if right is None else right
    assert left.std() > 1
    for row, case in enumerate(cases):
        for fused in case["fused"]:
            share = fused["reverse_weight"]
            scores = (1 - share) * left[row] + share * right[row]
            scores += fused["ctc_weight"] * torch.tensor(case["ctc"], dtype=torch.float64)
            torch.testing.assert_close(
                scores, torch.tensor(fused["each"], dtype=torch.float64), atol=2e-3, rtol=0
            )


@torch.inference_mode()
def test_hypotheses_do_not_depend_on_each_other(encoded) -> None:
    model, out = encoded("u2pp")
    hypotheses = [[[], [3], [4, 5, 6, 7]], [[9, 9], [10] * 6, [1]], [[11], [], [3, 2]]]
    tokens, lengths = padded(hypotheses)
    memory = Memory.of(out.hidden, out.lengths)
    for reverse in (False, True):
        together = model.decoder.score(memory, tokens, lengths, reverse)
        for row in range(3):
            frames = int(out.lengths[row])
            alone = Memory.of(out.hidden[row : row + 1, :frames], out.lengths[row : row + 1])
            for rank, hypothesis in enumerate(hypotheses[row]):
                one = torch.tensor([[hypothesis]], dtype=torch.int64).view(1, 1, -1)
                score = model.decoder.score(alone, one, torch.tensor([[len(hypothesis)]]), reverse)
                assert score.item() == pytest.approx(together[row, rank].item(), abs=1e-4)


@torch.inference_mode()
def test_a_reversed_score_reads_from_the_end(encoded) -> None:
    model, out = encoded("post-norm")
    twin = BiTransformerDecoder(model.config.decoder)
    twin.left, twin.right = model.decoder.right, model.decoder.left
    memory = Memory.of(out.hidden, out.lengths)
    tokens, lengths = padded([[[3, 4, 5, 9]], [[6]], [[7, 8]]])
    backwards, _ = padded([[[9, 5, 4, 3]], [[6]], [[8, 7]]])
    torch.testing.assert_close(
        model.decoder.score(memory, tokens, lengths, reverse=True), twin.score(memory, backwards, lengths)
    )


@torch.inference_mode()
def test_ids_outside_the_vocabulary_score_nothing(encoded) -> None:
    model, out = encoded("u2pp")
    memory = Memory.of(out.hidden, out.lengths)
    tokens, lengths = padded([[[3, 12], [3]], [[-1], [4]], [[5], [5, 6]]])
    scores = model.decoder.score(memory, tokens, lengths)
    assert (scores == -torch.inf).tolist() == [[True, False], [True, False], [False, False]]


def test_slices_of_the_logits_change_nothing(encoded, monkeypatch: pytest.MonkeyPatch) -> None:
    model, out = encoded("u2pp")
    memory = Memory.of(out.hidden, out.lengths)
    tokens, lengths = padded([case["nbest"] for case in golden("u2pp").cases])
    whole = model.decoder.score(memory, tokens, lengths)
    monkeypatch.setattr("oasr.models.decoders.bitransformer._LOGITS_AT_ONCE", 12 * 5)
    torch.testing.assert_close(model.decoder.score(memory, tokens, lengths), whole)


def test_one_direction_alone_has_no_reverse() -> None:
    decoder = BiTransformerDecoder(DecoderConfig(vocab_size=5, width=4, heads=1, ffn=4, layers=1))
    memory = Memory.of(torch.zeros(1, 2, 4), torch.tensor([2]))
    with pytest.raises(ValueError, match="right-to-left"):
        decoder.score(
            memory, torch.zeros(1, 1, 1, dtype=torch.int64), torch.ones(1, 1, dtype=torch.int64), True
        )
