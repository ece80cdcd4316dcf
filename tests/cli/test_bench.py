"""`oasr bench` over a real engine around a fake model: what it prints, writes, refuses and exits with."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import signal

import pytest
from helpers.bench_reports import make_report, measured
from helpers.fake_engines import make_engine
from oasr.engine import Engine
from oasr.errors import CheckpointError, OutputError

import oasr_cli.run

QUICK = ("--repeat", "2", "--warmup", "1", "--no-progress")


@pytest.fixture
def loaded(monkeypatch):
    """Batch sizes of the engines that were made, in order; `fail_at` makes one of them impossible."""

    class Loaded(list):
        fail_at = None

    made = Loaded()
    make_engine(monkeypatch).close()  # registers the fake family and puts the fake model in place

    def load(config):
        made.append(config.max_batch_size)
        if config.max_batch_size == made.fail_at:
            raise CheckpointError("the weights do not fit")
        return Engine(config)

    monkeypatch.setattr(oasr_cli.run, "load_engine", load)
    return made


@pytest.fixture
def listed(tmp_path, wav):
    """A manifest of `count` recordings, which the fake model hears as their amplitude, and odd rows."""

    def write(count=6, *extra):
        lines = []
        for number in range(count):
            wav(f"r{number}.wav", samples=100, rate=1000)
            lines.append({"id": f"r{number}", "audio": f"r{number}.wav", "text": "92"})
        path = tmp_path / "list.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in (*lines, *extra)))
        return path

    return write


def test_the_figures_of_every_batch_size_are_printed(oasr, loaded, listed):
    done = oasr("bench", listed(), *QUICK, "--batch-size", "1,4")
    assert done.code == 0, done.err
    assert loaded == [1, 4]
    names = {line.partition("\t")[0].strip() for line in done.out.splitlines()}
    assert names >= {
        *("RTFx", "utterances/s", "load", "warm-up", "first result", "steady state"),
        *("p50", "p90", "p95", "p99", "encoder", "decoder", "waiting for audio", "waiting for read-back"),
        *("features", "output", "share", "peak resident", "WER"),
    }
    assert "\tbatch size 1\tbatch size 4" in done.out
    assert "model tiny.en · fake_ar · cpu · float32 · rows: 6" in done.out.replace("int16", "float32")
    assert [line.partition(" · rows: 6")[0] for line in done.err.splitlines() if " in " in line] == [
        f"batch size {size} · {name}"
        for size in (1, 4)
        for name in ("warm-up 1 of 1", "pass 1 of 2", "pass 2 of 2")
    ]


def test_json_is_the_whole_report(oasr, loaded, listed):
    path = listed()
    done = oasr("bench", path, *QUICK, "--batch-size", "2", "--decode-option", "merge_groups=off", "--json")
    report = json.loads(done.out)
    assert (done.code, report["schema"], report["complete"]) == (0, "oasr-bench/1", True)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert report["list"] == {"inputs": [str(path)], "sha256": digest, "rows": 6}
    assert report["command"].startswith("oasr bench ") and report["command"].endswith(" --json")
    assert report["settings"]["decode_options"] == {"merge_groups": "off"}
    assert {"cpu", "cores", "gpu", "gpu_driver", "python", "oasr", "commit", "threads", "date"} <= set(
        report["environment"]
    )
    (run,) = report["runs"]
    assert (run["batch_size"], run["rows"], run["failed"]) == (2, 6, 0)
    assert run["audio_s"] == pytest.approx(0.6)
    assert len(run["passes"]) == 2 and len(run["warmup_s"]) == 1
    assert run["same_texts"] and run["errors"]["wer"]["rate"] == 0
    assert sum(run["shares"].values()) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("rows", "code"), [(3, 3), (0, 1)])
def test_failed_rows_are_in_the_exit_code_the_table_and_the_page(oasr, loaded, listed, tmp_path, rows, code):
    page = tmp_path / "page.html"
    absent = {"id": "x", "audio": "absent.wav", "text": "y"}
    done = oasr("bench", listed(rows, absent), *QUICK, "--html", page)
    assert done.code == code
    assert "  failed rows\t1" in done.out
    assert re.search(r"^  failed: .*list.jsonl:\d .*absent.wav", done.err, flags=re.MULTILINE)
    shown = page.read_text("utf-8")
    assert re.search(r'<th scope="row">failed rows</th><td>1</td>', shown)
    # A list that failed whole has a bar of no height, and no latencies.
    assert ("batch size 16: RTFx 0.000 (0.000–0.000)" in shown) == (rows == 0)
    assert shown.count("<svg") == (2 if rows else 1)


def test_failed_rows_are_told_before_a_page_that_cannot_be_written(oasr, loaded, listed, monkeypatch):
    def full(*_):
        raise OutputError("page.html: cannot be written")

    monkeypatch.setattr("oasr.bench.page.write", full)
    done = oasr("bench", listed(0, {"id": "x", "audio": "absent.wav"}), *QUICK, "--html", "page.html")
    assert done.code == 1 and "  failed: " in done.err.partition("page.html: cannot be written")[0]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--batch-size", "0"), "--batch-size: expected different numbers from 1 on"),
        (("--batch-size", "1,,2"), "--batch-size"),
        (("--batch-size", "8,8"), "--batch-size"),
        (("--batch-size", "9" * 30), "--batch-size"),
        (("--repeat", "0"), "--repeat: expected an integer >= 1, got 0"),
        (("--warmup", "-1"), "--warmup: expected an integer >= 0, got -1"),
        (("--top-k", "5"), "--top-k has no effect at --temperature 0"),
        (("--allow-different",), "--allow-different is about --compare only"),
        (("--html", "no/such/page.html"), "--html: no/such: there is no such folder"),
        (("--csv", "no/such/log.csv"), "--csv: no/such: there is no such folder"),
        (("--csv", "a.html", "--html", "a.html"), "--csv and --html are both a.html"),
        (("--model", "no-such-model"), "--model"),
    ],
)
def test_what_cannot_be_is_found_before_a_model_loads(oasr, loaded, listed, flags, words):
    done = oasr("bench", listed(), *flags)
    assert done.code == 2 and words in done.err.replace("\n", " ")
    assert loaded == [] and done.out == ""


def test_the_list_itself_is_never_overwritten(oasr, loaded, listed):
    path = listed()
    before = path.read_text()
    for flag in ("--html", "--csv"):
        assert oasr("bench", path, flag, path).code == 2
    assert path.read_text() == before and loaded == []


def test_csv_and_page_are_written(oasr, loaded, listed, tmp_path):
    log, page = tmp_path / "log.csv", tmp_path / "page.html"
    for _ in range(2):
        done = oasr("bench", listed(), *QUICK, "--batch-size", "1,4", "--csv", log, "--html", page)
        assert done.code == 0, done.err
    with log.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["batch_size"] for row in rows] == ["1", "4", "1", "4"]
    assert {row["wer_pct"] for row in rows} == {"0.0"}
    assert page.read_text("utf-8").count("<svg") == 3
    assert f"report: {page}" in done.err and f"report: {log}" in done.err


def test_what_was_measured_before_the_run_broke_is_kept(oasr, loaded, listed, tmp_path):
    loaded.fail_at = 8
    log = tmp_path / "log.csv"
    done = oasr("bench", listed(), *QUICK, "--batch-size", "1,8,32", "--csv", log, "--json")
    assert done.code == 1 and "the weights do not fit" in done.err
    report = json.loads(done.out)
    assert [run["batch_size"] for run in report["runs"]] == [1] and not report["complete"]
    assert len(log.read_text().splitlines()) == 2


def test_a_signal_ends_the_measurement_with_the_passes_that_are_whole(oasr, loaded, listed, monkeypatch):
    stream, passes = Engine.stream, []

    def interrupted(self, *args, **kwargs):
        passes.append(self)
        for number, pair in enumerate(stream(self, *args, **kwargs)):
            if (len(passes), number) == (3, 1):
                os.kill(os.getpid(), signal.SIGINT)
            yield pair

    monkeypatch.setattr(Engine, "stream", interrupted)
    done = oasr("bench", listed(), *QUICK, "--batch-size", "1,4", "--json")
    assert done.code == 130
    report = json.loads(done.out)
    assert [len(run["passes"]) for run in report["runs"]] == [1] and not report["complete"]
    assert "stopping; the pass that is under way does not count" in done.err
    assert loaded == [1]


@pytest.fixture
def saved(tmp_path):
    def save(name, report):
        path = tmp_path / name
        path.write_text(json.dumps(report))
        return path

    return save


def test_two_reports_are_compared(oasr, saved):
    a, b = saved("a.json", make_report()), saved("b.json", make_report(measured((1.0, 1.1, 1.9))))
    done = oasr("bench", "--compare", a, b)
    assert done.code == 0, done.err
    cells = {line.split("\t")[0].strip(): line.split("\t")[1:] for line in done.out.splitlines()}
    assert cells["RTFx"] == ["12.0", "21.8", "0.947–1.800–2.200", "inside the noise"]
    assert cells["load"][-1] == "equal" and cells["WER"] == ["5.00 %", "5.00 %", "", "equal"]
    found = json.loads(oasr("bench", "--compare", a, b, "--json").out)
    assert found["runs"]["8"][0]["ratio"]["max"] == pytest.approx(2.2, rel=1e-3)


def test_different_work_is_compared_only_when_that_is_wanted(oasr, saved):
    other = make_report(list={"inputs": ["other.jsonl"], "sha256": "c" * 64, "rows": 8})
    a, b = saved("a.json", make_report()), saved("b.json", other)
    refused = oasr("bench", "--compare", a, b)
    assert refused.code == 2 and refused.out == ""
    assert "lists differ, list.jsonl" in refused.err and "--allow-different" in refused.err
    done = oasr("bench", "--compare", a, b, "--allow-different")
    assert done.code == 0 and "different work: lists differ" in done.err and "RTFx" in done.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "expected two reports, A.json and B.json, got 1"),
        (("b.json", "--repeat", "2"), "--compare measures nothing, so --repeat has no effect"),
        (("b.json", "--model", "base"), "so --model has no effect"),
        (("b.json", "--csv", "x.csv"), "so --csv has no effect"),
        (("b.json",), "b.json: expected a report of `oasr bench --json`, cannot read it"),
    ],
)
def test_compare_refuses_what_it_would_ignore(oasr, saved, loaded, flags, words):
    done = oasr("bench", "--compare", saved("a.json", make_report()), *flags)
    assert done.code == 2 and words in done.err.replace("\n", " ")


@pytest.mark.weights
def test_the_real_model_on_real_speech(oasr, demo_manifest, tmp_path):
    rows = demo_manifest.read_text().splitlines()[:2]
    path = tmp_path / "two.jsonl"
    path.write_text("\n".join(rows).replace('"audio": "', f'"audio": "{demo_manifest.parent}/') + "\n")
    quick = ("--decode-option", "window=auto", "--repeat", "1", "--warmup", "0", "--no-progress")
    report = json.loads(oasr("bench", path, *quick, "--json").out)
    (run,) = report["runs"]
    assert report["model"]["sha256"].startswith("1a5afae06a4db91c")
    assert run["errors"]["wer"]["rate"] == 0 and run["audio_s"] == pytest.approx(5.4, abs=0.1)
    assert 0 < run["padding_share"] < 0.9 and run["shares"]["encoder"] > 0
