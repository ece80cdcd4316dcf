import json

import pytest
from helpers.bench_reports import make_report, measured, timed_pass
from oasr.bench import report, summary
from oasr.bench.runs import Pass
from oasr.errors import OptionsError
from oasr.executor.counters import Counters


def test_a_run_is_described_by_its_passes():
    run = make_report(measured((2.0, 2.4, 1.6)))["runs"][0]
    assert run["rtfx"] == {"min": 10.0, "median": 12.0, "max": 15.0}
    assert run["utterances_per_s"]["median"] == 4.0
    assert run["first_result_s"] == {"min": 0.2, "median": 0.25, "max": 0.3}
    assert run["steady_s"]["median"] == 1.75
    assert run["wall_s"]["median"] == pytest.approx(
        run["first_result_s"]["median"] + run["steady_s"]["median"]
    )
    assert (run["load_s"], run["warmup_s"], run["audio_s"], run["rows"]) == (1.5, [4.0], 24.0, 8)
    assert run["latency_s"]["max"] == 2.4
    assert run["padding_share"] == 0.75
    assert len(run["passes"]) == 3 and len(run["passes"][0]["latencies_s"]) == 8


def test_shares_are_parts_of_the_wall_time():
    shares = make_report()["runs"][0]["shares"]
    assert shares["encoder"] == pytest.approx(0.6) and shares["read"] == pytest.approx(0.1)
    assert shares["other"] == pytest.approx(0.1) and shares["readback"] == 0
    assert sum(shares.values()) == pytest.approx(1)


def test_the_device_clock_stands_for_its_stations():
    counters = Counters(seconds={"encoder": 0.1, "decode": 1.5, "read": 0.2})
    counters.device_seconds = {"encoder": 1.2, "decode": 0.6}
    shares = report.shares(counters, 2.0)
    assert (shares["encoder"], shares["decode"], shares["read"], shares["other"]) == (0.6, 0.3, 0.1, 0.0)
    counters.device_seconds["encoder"] = 2.0  # the host read audio meanwhile
    assert report.shares(counters, 2.0)["other"] == 0


def paced(rows: int, first_s: float, step_s: float) -> Pass:
    at = tuple(first_s + step_s * n for n in range(rows))
    return Pass(at, tuple(float(n + 1) for n in range(rows)), at, rows, 0, Counters(), "")


def test_the_steady_state_leaves_out_how_the_pipeline_fills():
    one = paced(100, first_s=5.0, step_s=0.1)
    assert one.audio_s / one.wall_s < 7
    assert one.steady_rtfx(in_flight=25) == pytest.approx(10)
    assert one.steady_rtfx(in_flight=26) is None
    assert paced(3, 1.0, 0.1).steady_rtfx(in_flight=1) is None


def test_results_that_come_at_once_have_no_steady_state():
    assert paced(40, first_s=5.0, step_s=0.0).steady_rtfx(in_flight=2) is None


def test_a_list_that_failed_whole_is_reported():
    nothing = Pass((0.5, 1.0), (0.0, 0.0), (), 2, 2, Counters(), "")
    made = make_report(measured(passes=(nothing,), score={"failed": 2, "without_reference": 0}))
    run = made["runs"][0]
    assert run["rtfx"]["median"] == 0 and run["latency_s"] is None and run["padding_share"] is None
    words = {line.name: line.cells for line in summary.lines(made)}
    assert words["failed rows"] == ("2",) and words["not scored"] == ("2 failed",)
    assert "p50" not in words and "WER" not in words


def test_a_report_is_json_and_reads_back(tmp_path):
    made = make_report(measured(batch_size=1), measured(batch_size=8))
    path = tmp_path / "a.json"
    path.write_text(json.dumps(made, allow_nan=False))
    assert report.read(path) == made


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"schema": "oasr-bench/0"}', '{"schema": 1', None])
def test_what_is_no_report_is_refused_with_its_name(tmp_path, text):
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(OptionsError, match=r"x\.json: expected a report of `oasr bench --json`"):
        report.read(path)


def test_a_cell_stands_for_each_batch_size():
    made = make_report(measured(batch_size=1), measured((1.0, 1.0, 1.0), batch_size=8))
    words = {line.name: line.cells for line in summary.lines(made)}
    assert words["RTFx"] == ("12.0 (10.9–13.3)", "24.0 (24.0–24.0)")
    assert words["encoder"] == ("60.0 %", "60.0 %")
    assert words["WER"] == ("5.00 %", "5.00 %")
    assert words["S/D/I of N"] == ("3/1/1 of 100",) * 2
    assert words["peak resident"] == ("512 MiB", "512 MiB")
    assert "peak GPU" not in words and "CER" not in words
    assert {len(line.cells) for line in summary.lines(made)} == {2}


def test_one_repeat_claims_no_spread():
    words = {line.name: line.cells for line in summary.lines(make_report(measured((2.0,))))}
    assert words["RTFx"] == ("12.0",)


def test_warnings_say_what_makes_figures_doubtful():
    assert summary.warnings(make_report()) == []
    busy = make_report(complete=False, settings={"repeat": 1, "warmup": 0, "decode_options": {}})
    busy["environment"] = busy["environment"] | {"load_average": 3.0}
    assert [text.partition(":")[0] for text in summary.warnings(busy)] == [
        "stopped early",
        "no warm-up",
        "one repeat",
        "the machine was busy before the start",
    ]
    passes = (timed_pass(2.0), timed_pass(2.0, texts="other"))
    odd = make_report(measured(passes=passes), measured(batch_size=1, passes=passes[1:], warmups=()))
    assert "batch size 8: the passes did not give the same texts" in summary.warnings(odd)
    assert "the batch sizes did not give the same texts" in summary.warnings(odd)


def test_the_headline_names_model_machine_and_commit():
    work, machine, when = summary.headline(make_report())
    assert work.startswith("model tiny.en · aed · cpu · int16 · rows: 8")
    for words in ("Test CPU <9000>", "oasr 0.1.0 at 0123456789", "torch 2.10.0"):
        assert words in machine
    assert when == "2026-01-02T03:04:05+00:00 · model sha256 aaaaaaaaaaaa · list sha256 bbbbbbbbbbbb"
    on_gpu = make_report()
    on_gpu["environment"] |= {"gpu": "Test GPU", "gpu_driver": "580.1"}
    assert summary.headline(on_gpu)[1].startswith("Test GPU (driver 580.1) · Test CPU")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        *(
            (None, "–"),
            (0.0, "0.000"),
            (0.012345, "0.012"),
            (0.12345, "0.12"),
            (1.2345, "1.23"),
            (12.345, "12.3"),
        ),
        *((123.45, "123"), (2003.4, "2003"), (999.9, "1000")),
    ],
)
def test_figures_have_the_digits_that_count(value, words):
    assert summary.figure(value) == words
