from __future__ import annotations

import random
from fractions import Fraction

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oasr.errors import OptionsError
from oasr.scoring.wer import Rules, Score, Scorer, count_errors, score_row

UNITS = st.lists(st.sampled_from(["a", "b", "c", "aa", "ä", "字"]), max_size=9)


def edit_distance(reference: list[str], hypothesis: list[str]) -> int:
    """Wagner and Fischer's table, written out."""
    row = list(range(len(hypothesis) + 1))
    for i, expected in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, found in enumerate(hypothesis, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (expected != found))
    return row[-1]


@settings(deadline=None)
@given(UNITS, UNITS)
def test_counts_are_a_smallest_alignment(reference, hypothesis):
    substitutions, deletions, insertions = count_errors(reference, hypothesis)
    assert substitutions + deletions + insertions == edit_distance(reference, hypothesis)
    assert insertions - deletions == len(hypothesis) - len(reference)
    assert min(substitutions, deletions, insertions) >= 0
    assert substitutions + deletions <= len(reference)


@settings(deadline=None)
@given(st.lists(st.tuples(UNITS, UNITS), min_size=1, max_size=6), st.randoms())
def test_pooling_adds_counts_and_does_not_depend_on_order(pairs, rng: random.Random):
    scores = [score_row(" ".join(r), " ".join(h), "de", "none") for r, h in pairs]
    total = sum(scores[1:], scores[0])
    assert total.errors == sum(edit_distance(r, h) for r, h in pairs)
    assert total.ref_units == sum(len(r) for r, _ in pairs)
    assert total.rows == len(pairs)
    rng.shuffle(scores)
    assert sum(scores[1:], scores[0]) == total
    if total.ref_units:
        assert total.rate == pytest.approx(100 * total.errors / total.ref_units)
    else:
        assert total.rate is None


def test_kinds_of_errors_are_told_apart():
    assert count_errors([*"abcd"], [*"axcde"]) == (1, 0, 1)
    assert count_errors([*"abc"], [*"ac"]) == (0, 1, 0)


@pytest.mark.parametrize("reference", ["", "  \n", "[music]", "(inaudible)", "?!"])
def test_an_empty_reference_makes_all_words_insertions_and_has_no_rate(reference):
    score = score_row(reference, "a b c", "en")
    assert (score.substitutions, score.deletions, score.insertions, score.ref_units) == (0, 0, 3, 0)
    assert score.rate is None
    assert score.as_row()["wer"]["rate"] is None
    assert "WER undefined: every reference is empty (S 0, D 0, I 3, N 0" in score.describe()


def test_an_empty_reference_counts_in_the_pooled_rate():
    total = score_row("", "a b c", "en") + score_row("hello there", "hello there", "en")
    assert total.rate == 150.0


def test_an_empty_hypothesis_is_all_deletions():
    score = score_row("a b c", "", "de")
    assert (score.deletions, score.rate) == (3, 100.0)
    assert score_row("", "", "de").errors == 0


def test_the_language_chooses_the_units():
    assert score_row("你好，世界", "你好 世 界！", "zh-CN") == Score(0, 0, 0, 4, "cer", "chinese")
    assert score_row("用iPhone", "用 ipone", "zh") == Score(0, 1, 0, 7, "cer", "chinese")
    assert Rules("chinese", "wer").score("用iPhone", "用 ipone") == Score(1, 0, 0, 2, "wer", "chinese")
    assert score_row("colour", "color", "en").errors == 0
    assert score_row("colour", "color", "de") == Score(1, 0, 0, 1, "wer", "basic")
    assert score_row("Hi", "hi", "en", normalizer="none").errors == 1


def test_words_and_characters_are_never_added_up():
    with pytest.raises(ValueError, match="a wer and a cer"):
        score_row("a", "a", "en") + score_row("字", "字", "zh")


def test_a_row_record_has_every_count():
    assert score_row("a b c", "a x c d", "de").as_row() == {
        "wer": {
            "rate": 66.6667, "substitutions": 1, "deletions": 0, "insertions": 1, "reference_units": 3,
            "normalizer": "basic",
        }
    }  # fmt: skip


def test_scorer_keeps_languages_and_metrics_apart_and_says_what_it_left_out():
    scorer = Scorer()
    assert scorer.add("hello there", "hello", "en").deletions == 1
    scorer.add("good morning", "good morning", "en-GB")
    scorer.add("guten Tag", "guten Tag auch", "de")
    scorer.add("字字字字", "字字字", "zh")
    assert scorer.add("lost", None, "en") is None
    assert scorer.add(None, "x", "en") is None
    assert list(scorer.by_language()) == [("cer", "zh"), ("wer", "de"), ("wer", "en")]
    assert scorer.lines() == [
        "WER 33.33 % (S 0, D 1, I 1, N 6; 3 rows; basic+english)",
        "  de: WER 50.00 % (S 0, D 0, I 1, N 2; 1 row; basic)",
        "  en: WER 25.00 % (S 0, D 1, I 0, N 4; 2 rows; english)",
        "CER 25.00 % (S 0, D 1, I 0, N 4; 1 row; chinese)",
        "not scored: 1 failed, 1 without a reference",
    ]
    record = scorer.as_dict()
    assert (record["wer"]["rate"], record["cer"]["deletions"]) == (33.3333, 1)
    assert record["languages"]["en"]["rows"] == 2 and record["failed"] == 1


def test_scorer_with_nothing_to_score_says_so():
    assert Scorer().lines() == ["nothing to score"]
    scorer = Scorer()
    scorer.add("", "noise", None)
    assert scorer.lines() == ["WER undefined: every reference is empty (S 0, D 0, I 1, N 0; 1 row; basic)"]


@settings(deadline=None)
@given(st.lists(st.tuples(UNITS, UNITS), min_size=1, max_size=6), st.sampled_from(["wer", "cer"]))
def test_pooled_figures_are_those_of_jiwer(pairs, metric):
    rules = Rules("none", metric)
    scores = [rules.score(" ".join(r), " ".join(h)) for r, h in pairs]
    total = sum(scores[1:], scores[0])
    gap = " " if metric == "wer" else ""
    references, hypotheses = ([gap.join(side) for side in sides] for sides in zip(*pairs, strict=True))
    process = jiwer.process_words if metric == "wer" else jiwer.process_characters
    found = process(references, hypotheses)
    assert (total.substitutions, total.deletions, total.insertions) == (
        found.substitutions, found.deletions, found.insertions,
    )  # fmt: skip
    if total.ref_units:
        assert total.ref_units == found.hits + found.substitutions + found.deletions
        exact = Fraction(100 * total.errors, total.ref_units)
        assert total.rate == float(exact)
        assert total.rate == pytest.approx(100 * (found.wer if metric == "wer" else found.cer))


@pytest.mark.parametrize(("normalizer", "metric"), [("englisch", "wer"), ("basic", "per")])
def test_rules_refuse_unknown_names_at_once(normalizer, metric):
    with pytest.raises(OptionsError, match=r"known: basic|expected wer or cer"):
        Rules(normalizer, metric)


def test_scorer_refuses_an_unknown_normalizer_at_once():
    with pytest.raises(OptionsError, match="unknown text normalizer"):
        Scorer("x")
