from itertools import product

import numpy as np
import pytest
from helpers.bench_reports import ERRORS, MODEL, make_report, measured
from hypothesis import given
from hypothesis import strategies as st
from oasr.bench.compare import compare
from oasr.errors import OptionsError

OTHER_LIST = {"inputs": ["other.jsonl"], "sha256": "c" * 64, "rows": 8}


def figures(found, size=8):
    return {figure.name: figure for figure in found.runs[size]}


walls = st.lists(st.floats(0.5, 4.0), min_size=2, max_size=5)


@given(walls, walls)
def test_ratios_are_those_of_every_pair_of_repeats(walls_a, walls_b):
    found = figures(compare(make_report(measured(walls_a)), make_report(measured(walls_b))))["RTFx"]
    pairs = [a / b for a, b in product(walls_a, walls_b)]
    got = (found.ratio.min, found.ratio.median, found.ratio.max)
    assert got == pytest.approx((min(pairs), np.median(pairs), max(pairs)), rel=1e-3)


@pytest.mark.parametrize(
    ("walls_b", "rtfx", "latency"),
    [
        ((1.0, 1.1, 0.9), "faster", "faster"),
        ((3.0, 3.1, 2.9), "slower", "slower"),
        ((1.7, 1.9, 2.1), "inside the noise", "inside the noise"),
        ((1.0,), "noise unknown", "noise unknown"),
        ((2.2, 2.3, 2.4), "inside the noise", "inside the noise"),  # 2.2 is a repeat of both
    ],
)
def test_verdicts(walls_b, rtfx, latency):
    found = figures(compare(make_report(), make_report(measured(walls_b))))
    assert (found["RTFx"].verdict, found["latency p95"].verdict) == (rtfx, latency)


def test_a_report_equals_itself():
    found = compare(make_report(), make_report())
    assert {f.verdict for f in found.runs[8]} <= {"equal", "inside the noise"}
    assert not found.differences and not found.different_work


def test_what_is_measured_once_has_no_noise():
    found = figures(compare(make_report(), make_report(measured(load_s=3.0, peak_rss_bytes=2**30))))
    assert (found["load"].ratio.median, found["load"].verdict) == (2.0, "noise unknown")
    assert (found["peak resident"].a, found["peak resident"].b) == (512, 1024)
    assert "peak GPU" not in found


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (make_report(list=OTHER_LIST), "lists differ, list.jsonl .* against other.jsonl"),
        (make_report(measured(model=MODEL | {"name": "base", "sha256": "d" * 64})), "models differ, tiny.en"),
        (make_report(measured(model=MODEL | {"sha256": None})), "models differ"),
        (make_report(measured(passes=measured().passes[:1] * 3)), None),
    ],
)
def test_different_work_is_refused_unless_allowed(other, words):
    if words is None:
        assert compare(make_report(), other).different_work == ()
        return
    with pytest.raises(OptionsError, match=f"different work: {words}.*--allow-different"):
        compare(make_report(), other)
    assert len(compare(make_report(), other, allow_different=True).different_work) == 1


def test_models_without_a_digest_are_told_apart_by_their_names():
    one, other = (make_report(measured(model=MODEL | {"name": n, "sha256": None})) for n in ("one", "other"))
    assert compare(one, one).different_work == ()
    with pytest.raises(OptionsError, match=r"models differ, one .* against other"):
        compare(one, other)


def test_rows_that_failed_on_one_side_are_different_work():
    other = make_report()
    other["runs"][0] |= {"failed": 2, "audio_s": 18.0}
    with pytest.raises(OptionsError, match=r"8 rows \(24.0 s\) against 6 \(18.0 s\) were transcribed"):
        compare(make_report(), other)


def test_batch_sizes_are_matched_and_the_rest_is_named():
    a = make_report(measured(batch_size=1), measured(batch_size=8))
    b = make_report(measured(batch_size=8), measured(batch_size=32))
    found = compare(a, b)
    assert (list(found.runs), found.only_a, found.only_b) == ([8], (1,), (32,))
    with pytest.raises(OptionsError, match="no batch size in common: 1, 8 and 16"):
        compare(a, make_report(measured(batch_size=16)))


def test_settings_and_machine_that_differ_are_named():
    other = make_report(measured(dtype="float32"), settings={"repeat": 5, "warmup": 1, "decode_options": {}})
    other["environment"] = other["environment"] | {"cpu": "Other CPU", "date": "2027", "load_average": 9.0}
    assert compare(make_report(), other).differences == (
        "dtype: int16 against float32",
        "repeat: 3 against 5",
        "cpu: Test CPU <9000> against Other CPU",
    )


def test_error_rates_stand_side_by_side():
    worse = measured(score=ERRORS | {"wer": ERRORS["wer"] | {"rate": 6.0}})
    assert compare(make_report(), make_report(worse)).error_rates == {8: {"wer": (5.0, 6.0)}}
    none = measured(score={"failed": 0, "without_reference": 8})
    assert compare(make_report(), make_report(none)).error_rates == {8: {"wer": (5.0, None)}}
