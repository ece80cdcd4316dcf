from __future__ import annotations

import jiwer
import pytest
from oasr.errors import OptionsError
from oasr.scoring.report import (
    RuleChoice,
    by_metric,
    check_keys,
    groups,
    pooled,
    score_samples,
    spelled,
    worst,
)
from oasr.scoring.samples import Sample

SAMPLES = [
    Sample("a", "Hello there, world", ("hello world",), "en", {"speaker": "x", "n": 2}),
    Sample("b", "Colour", ("color",), "en", {"speaker": "y", "n": 10}),
    Sample("c", "guten Tag", (None,), "de", {"speaker": "x"}),
    Sample("d", "今天，好", ("今天不好",), "zh", {"speaker": None}),
    Sample("e", "?", ("one two three",), None, {}),
]


def test_every_row_is_scored_by_its_language_and_a_failed_one_is_all_deletions():
    rows = score_samples(SAMPLES, 0, RuleChoice())
    figures = [(r.score.metric, r.score.normalizer, r.score.errors, r.score.ref_units) for r in rows]
    assert figures == [
        ("wer", "english", 1, 3),
        ("wer", "english", 0, 1),
        ("wer", "basic", 2, 2),
        ("cer", "chinese", 1, 3),
        ("wer", "basic", 3, 0),
    ]
    assert [row.failed for row in rows] == [False, False, True, False, False]
    assert rows[2].score.deletions == 2 and [step.kind for step in rows[2].alignment()] == [
        "delete",
        "delete",
    ]
    assert {metric: len(part) for metric, part in by_metric(rows).items()} == {"wer": 4, "cer": 1}
    total = pooled(by_metric(rows)["wer"])
    assert (total.errors, total.ref_units, total.rate, total.rows) == (6, 6, 100.0, 4)


def test_a_choice_overrides_the_language_of_the_rows():
    rows = score_samples(SAMPLES[:2], 0, RuleChoice(normalizer="none", metric="cer"))
    assert pooled(rows).errors == sum(
        jiwer.process_characters(s.reference.replace(" ", ""), s.hypotheses[0].replace(" ", "")).substitutions
        + abs(len(s.reference.replace(" ", "")) - len(s.hypotheses[0].replace(" ", "")))
        for s in SAMPLES[:2]
    )
    (row,) = score_samples([SAMPLES[1]], 0, RuleChoice(language="de"))
    assert row.score.errors == 1
    with pytest.raises(OptionsError, match="unknown text normalizer"):
        RuleChoice(normalizer="x")


def test_groups_hold_every_row_once():
    rows = score_samples(SAMPLES, 0, RuleChoice(metric="wer", normalizer="basic"))
    found = groups(rows, "speaker")
    assert [(value, [row.sample.id for row in part]) for value, part in found] == [
        (None, ["d", "e"]), ("x", ["a", "c"]), ("y", ["b"]),
    ]  # fmt: skip
    assert [value for value, _ in groups(rows, "n")] == [None, 10, 2]
    assert (spelled(None), spelled("ä"), spelled(2), spelled({"b": "ä"})) == (
        "(none)",
        "ä",
        "2",
        '{"b": "ä"}',
    )


def test_a_key_that_no_row_has_is_refused_with_those_there_are():
    check_keys(SAMPLES, ["speaker", "n"])
    with pytest.raises(OptionsError, match="--by: no row has the key 'spk'; there are: n, speaker"):
        check_keys(SAMPLES, ["spk"])


def test_the_worst_rows_cost_most_and_have_errors():
    rows = score_samples(SAMPLES, 0, RuleChoice())
    assert [row.sample.id for row in worst(rows, 9)] == ["e", "c", "a", "d"]
    assert [row.sample.id for row in worst(rows, 2)] == ["e", "c"]
    assert worst(rows, 0) == []
