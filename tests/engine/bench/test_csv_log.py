import csv

import pytest
from helpers.bench_reports import make_report, measured
from oasr.bench.csv_log import COLUMNS, CsvLog
from oasr.errors import OptionsError, OutputError

HEADER = (
    "date,commit,oasr,python,torch,cpu,cores,gpu,gpu_driver,threads,model,model_sha256,list,"
    "list_sha256,device,dtype,decode_method,decode_options,batch_size,warmup,repeat,rows,failed,"
    "audio_s,load_s,warmup_s,first_result_s,steady_s,wall_s,rtfx_min,rtfx,rtfx_max,rtfx_steady,"
    "utterances_per_s,latency_p50_s,latency_p90_s,latency_p95_s,latency_p99_s,share_read,"
    "share_collate_wait,share_features,share_encoder,share_decode,share_readback,share_output,"
    "share_other,padding_share,peak_rss_mib,peak_gpu_mib,wer_pct,cer_pct"
)


def append(path, *runs):
    made = make_report(*runs)
    for run in made["runs"]:
        CsvLog(path).append(made, run)


def rows(path):
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_runs_are_appended_below_one_header(tmp_path):
    path = tmp_path / "log.csv"
    append(path, measured(batch_size=1), measured(batch_size=8))
    append(path, measured((1.0,), batch_size=8))
    found = rows(path)
    assert [row["batch_size"] for row in found] == ["1", "8", "8"]
    assert [row["rtfx"] for row in found] == ["12.0", "12.0", "24.0"]
    assert (found[0]["rtfx_min"], found[0]["rtfx_max"]) == ("10.9091", "13.3333")
    assert (found[0]["cpu"], found[0]["model_sha256"], found[0]["torch"]) == (
        "Test CPU <9000>",
        "a" * 64,
        "2.10.0",
    )
    assert (found[0]["wer_pct"], found[0]["cer_pct"], found[0]["peak_gpu_mib"]) == ("5.0", "", "")
    assert (found[0]["share_encoder"], found[0]["padding_share"], found[2]["repeat"]) == ("0.6", "0.75", "1")
    assert tuple(found[0]) == COLUMNS


def test_the_header_is_stable():
    # Another header makes every file that users have unusable.
    assert ",".join(COLUMNS) == HEADER


def test_commas_quotes_and_new_lines_survive(tmp_path):
    path = tmp_path / "log.csv"
    made = make_report(list={"inputs": ['a,"b"\nc.jsonl', "d.jsonl"], "sha256": "e", "rows": 8})
    CsvLog(path).append(made, made["runs"][0])
    assert rows(path)[0]["list"] == 'a,"b"\nc.jsonl d.jsonl'


def test_a_file_with_another_header_is_refused_before_any_work(tmp_path):
    path = tmp_path / "log.csv"
    text = ",".join(("surprise", *COLUMNS[1:])) + "\r\n"
    path.write_text(text)
    with pytest.raises(OptionsError, match=r"its header .*it lacks date; it has surprise.*another file"):
        CsvLog(path)
    path.write_text(",".join(reversed(COLUMNS)) + "\r\n")
    with pytest.raises(OptionsError, match="another order"):
        CsvLog(path)
    assert path.read_text().startswith("cer_pct")


def test_no_file_that_is_something_else_is_touched(tmp_path):
    binary = tmp_path / "a.wav"
    binary.write_bytes(b"RIFF\xff\xfe\x00")
    for path, words in (
        (binary, "CSV file"),
        (tmp_path, "ordinary file"),
        (tmp_path / "no" / "log.csv", "no such folder"),
    ):
        with pytest.raises(OptionsError, match=f"--csv: .*{words}"):
            CsvLog(path)
    assert binary.read_bytes() == b"RIFF\xff\xfe\x00"


def test_an_empty_file_gets_a_header_and_a_half_line_stays_apart(tmp_path):
    path = tmp_path / "log.csv"
    path.touch()
    append(path)
    path.write_bytes(path.read_bytes() + b"2026,half")
    append(path)
    found = rows(path)
    assert [row["rtfx"] for row in found] == ["12.0", None, "12.0"]


def test_a_disk_that_is_full_is_an_output_error(tmp_path, monkeypatch):
    log = CsvLog(tmp_path / "log.csv")
    made = make_report()
    monkeypatch.setattr(log, "_path", tmp_path)
    with pytest.raises(OutputError, match="cannot be written"):
        log.append(made, made["runs"][0])
