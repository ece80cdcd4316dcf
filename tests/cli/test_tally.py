"""Counting, and the lines that the counts become."""

from __future__ import annotations

from oasr.types import RequestOutput, RowFailure, Utterance

from oasr_cli.tally import Tally, clock_time, failure_line


def tally(**fields):
    now = [100.0]
    counted = Tally(clock=lambda: now[0], **fields)
    counted.start()
    return counted, now


def ok(seconds=30.0, **fields):
    return RequestOutput("x", text="t", duration_s=seconds, finish_reason="stop", **fields)


def bad(message="no such file"):
    return RequestOutput("x", error_stage="audio", error_message=message)


def test_speed_and_time_left():
    counted, now = tally(total=10)
    assert counted.eta_s is None
    for _ in range(4):
        counted.count(Utterance("x"), ok())
    now[0] += 8.0
    assert counted.rtfx == 15.0 and counted.eta_s == 12.0 and counted.left == 6
    assert counted.progress_line() == "4/10 rows · 15.0× real time · 12.0 s left"


def test_rows_done_before_do_not_count_as_speed():
    counted, now = tally(total=10)
    for ok_before in (1, 1, 0):
        counted.skip(ok_before, 1 - ok_before)
    counted.count(Utterance("x"), ok())
    now[0] += 2.0
    assert counted.eta_s == 12.0
    assert (counted.done, counted.all_ok, counted.all_failed) == (4, 3, 1)
    assert (
        counted.summary()[0]
        == "rows: 1 ok, 0 failed, 3 done before · 0.01 h of audio in 2.0 s · 15.0× real time"
    )


def test_channels_of_one_row_are_one_row_of_progress():
    counted, _ = tally(total=1)
    counted.count(Utterance("x-ch0", part=0, parts=2), ok())
    # A stop may come between the two, and the row is not done then.
    assert (counted.ok, counted.done, counted.left) == (1, 0, 1)
    counted.count(RowFailure("x-ch1", 0, "audio", "broke", part=1, parts=2), bad())
    assert (counted.ok, counted.failed, counted.done, counted.left) == (1, 1, 1, 0)


def test_results_of_a_row_done_before_count_one_each():
    counted, now = tally(total=2)
    counted.skip(ok=1, failed=1)
    counted.keep(Utterance("y-ch0", index=1, parts=2), ok(), failed=True)
    assert (counted.done, counted.left) == (1, 1)
    counted.count(Utterance("y-ch1", index=1, part=1, parts=2), ok())
    now[0] += 6.0
    assert counted.counts == {"rows": 2, "ok": 2, "failed": 2, "left": 0}
    # The channel that stays was transcribed all the same.
    assert counted.summary() == [
        "rows: 1 ok, 0 failed, 3 done before · 0.02 h of audio in 6.0 s · 10.0× real time"
    ]


def test_the_clock_stands_after_stop():
    counted, now = tally()
    now[0] += 3
    counted.stop()
    now[0] += 100
    assert counted.wall_s == 3


def test_what_the_summary_warns_of():
    counted, now = tally()
    now[0] += 1
    counted.count(Utterance("a"), ok(warnings=("cut short",)))
    counted.count(Utterance("b"), RequestOutput("b", text="t", duration_s=1, finish_reason="length"))
    counted.count(RowFailure("c", 2, "manifest", "m"), bad())
    lines = counted.summary()
    assert lines[1:] == [
        "  failed: id 'c': audio: no such file",
        "warnings: 1 row, see `warnings` in the results",
        "cut: 1 row ended at the token limit, see --max-new-tokens",
    ]


def test_a_failure_names_its_place_once():
    row = Utterance("a\nb", origin="list.jsonl:7")
    assert failure_line(row, bad()) == "list.jsonl:7 (id 'a\\nb'): audio: no such file"
    told = bad("list.jsonl:7 (id=a): not JSON")
    assert failure_line(row, told) == "list.jsonl:7 (id=a): not JSON"


def test_times():
    assert [clock_time(s) for s in (0, 59.94, 59.96, 3723.4)] == ["0.0 s", "59.9 s", "0:01:00", "1:02:03"]
