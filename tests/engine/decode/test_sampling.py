from dataclasses import replace

import pytest
import torch
from helpers.fake_models import request
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.decode.groups import Row
from oasr.decode.sampling import keep_top, select_next_tokens
from oasr.types import DecodingOptions


def rows(*requests):
    return [Row(r, limit=100) for r in requests]


def test_greedy_takes_the_lower_index_of_a_tie_and_reports_its_log_probability():
    logits = torch.tensor([[1.0, 3.0, 3.0, -torch.inf], [0.0, 0.0, 0.0, 0.0]])
    chosen, log_probs = select_next_tokens(logits, rows(request(1), request(2)))
    assert chosen.tolist() == [1, 0]
    expected = torch.log_softmax(logits.double(), -1)[[0, 1], [1, 0]]
    torch.testing.assert_close(log_probs.double(), expected, atol=1e-6, rtol=0)


def test_a_draw_depends_on_its_request_alone():
    torch.manual_seed(0)
    logits = torch.randn(3, 50)
    hot = [request(n, temperature=1.0, seed=7) for n in (1, 2, 3)]
    together, _ = select_next_tokens(logits, rows(*hot))
    apart = [int(select_next_tokens(logits[i : i + 1], rows(r))[0]) for i, r in enumerate(hot)]
    assert together.tolist() == apart
    torch.manual_seed(99)
    again, _ = select_next_tokens(logits, rows(*hot))
    assert again.tolist() == apart


def test_a_row_named_after_a_file_whose_name_is_not_utf8_is_sampled():
    logits = torch.zeros(1, 1000)
    draws = [
        int(select_next_tokens(logits, rows(replace(request(1, temperature=1.0), id=name)))[0])
        for name in ("caf\udce9.wav", "caf\udce9.wav", "caf\udce8.wav")
    ]
    assert draws[0] == draws[1] != draws[2]


def test_draws_follow_the_distribution():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2, 0.0]]))
    counts = torch.zeros(4)
    for seed in range(2000):
        chosen, _ = select_next_tokens(logits, rows(request(1, temperature=1.0, seed=seed)))
        counts[chosen] += 1
    assert counts[3] == 0
    torch.testing.assert_close(counts / 2000, torch.tensor([0.5, 0.3, 0.2, 0.0]), atol=0.04, rtol=0)


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.integers(0, 15),
    st.floats(0.05, 1.0),
)
@settings(deadline=None)
def test_top_k_and_top_p_keep_what_their_definitions_say(values, top_k, top_p):
    logits = torch.tensor(values, dtype=torch.float64)
    kept = keep_top(logits, DecodingOptions(top_k=top_k, top_p=top_p))
    after_k = sorted(values, reverse=True)[: top_k or None]
    alive = [v for v in values if v >= after_k[-1]]
    probs = torch.tensor(sorted(alive, reverse=True), dtype=torch.float64).softmax(0)
    nucleus = int((probs.cumsum(0) - probs < top_p).sum())
    assert int(torch.isfinite(kept).sum()) == nucleus >= 1
    assert torch.isfinite(kept)[logits.argmax()]


def test_greedy_rows_and_sampled_rows_share_a_batch():
    logits = torch.tensor([[0.0, 5.0], [0.0, 5.0]])
    chosen, _ = select_next_tokens(logits, rows(request(1), request(2, temperature=100.0, top_k=1)))
    assert chosen.tolist() == [1, 1]


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_finished_rows_draw_nothing(reason):
    row = Row(request(1, temperature=1.0), limit=1, finish_reason=reason)
    chosen, _ = select_next_tokens(torch.tensor([[0.0, 1.0]]), [row])
    assert chosen.tolist() == [1]
