"""The load runs: what a run leaves is counted, told apart by parts of the list, and judged."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

CI = Path(__file__).resolve().parents[2] / "ci"
WRITER = """
import sys, time
print("model", file=sys.stderr, flush=True)
for number in range(20):
    print('{"id": "the-hour"}' if number == 12 else f'{{"id": "row-{number}"}}', flush=True)
    time.sleep(0.1)
print("torn", end="")
"""


@pytest.fixture(scope="module")
def load():
    sys.path.insert(0, str(CI))
    try:
        yield importlib.import_module("load")
    finally:
        sys.path.remove(str(CI))
        for name in ("load", "load_watch"):
            sys.modules.pop(name, None)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_whole_lines_are_counted_until_the_process_is_over(load, tmp_path, capsys):
    found = load.watch([sys.executable, "-c", WRITER], tmp_path, None, b"the-hour")
    assert found.code == 0 and found.samples[-1].rows == 20 and found.marked[1] == 12
    assert 0 < found.ready_s <= found.marked[0] <= found.samples[-1].at_s
    assert all(sample.rss_mb > 0 and sample.threads >= 1 for sample in found.samples)
    assert capsys.readouterr().out == "model\n"


def test_cpu_time_counts_by_what_it_was_worth(load, tmp_path, monkeypatch):
    watch = importlib.import_module("load_watch")
    monkeypatch.setattr(watch, "burst", lambda: watch.BURST_S / 3)
    found = load.watch([sys.executable, "-c", "sum(range(10**8))"], tmp_path, None)
    last = found.samples[-1]
    assert last.cpu_s > 0.2 and last.work_s == pytest.approx(3 * last.cpu_s)
    monkeypatch.undo()
    assert 0 < watch.burst() < 1


def steady(load, rows=1000, **last):
    """A run that writes 10 rows a sample; `last` is how its last tenth differs.

    `speed` is the machine's then, of which its work takes no notice.
    """
    watch = importlib.import_module("load_watch")
    found = watch.Watched(code=last.get("code", 0))
    at, work, handles, rss = 0.0, 0.0, 7, 500.0
    for count in range(0, rows + 1, 10):
        in_last = count > rows * 0.9
        seconds, speed = (last.get("seconds", 1.0), last.get("speed", 1.0)) if in_last else (1.0, 1.0)
        at, work = at + seconds / speed, work + 3 * seconds
        rss = last.get("rss", 500.0) if in_last else 500.0
        handles = last.get("handles", 7) if in_last else 7
        found.samples.append(watch.Sample(at, 2 * at, rss, handles, 6, count, work))
    return found


@pytest.mark.parametrize(
    ("last", "bad"),
    [
        ({}, ""),
        ({"rss": 560.0}, "RSS"),
        ({"handles": 20}, "handles"),
        ({"seconds": 1.2}, "last tenth"),
        ({"seconds": 1.2, "speed": 1.2}, "last tenth"),
        ({"speed": 0.5}, ""),
        ({"failed": 1}, "results"),
        ({"code": 1}, "exit code"),
    ],
)
def test_what_grows_or_slows_down_is_told(load, tmp_path, capsys, last, bad):
    rows = [{"id": number, "pred_text": ""} for number in range(1000)]
    if last.get("failed"):
        rows[5] = {"id": 5, "error": {"stage": "audio", "message": "gone"}}
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = steady(load, **last)
    load.print_parts(found, 1000)
    assert load.judge_list(found, 1000, tmp_path) is not bool(bad)
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("BAD")]
    assert len(told) == bool(bad) and bad in "".join(told)


def test_parts_of_a_made_list_have_the_same_lengths(load):
    import random

    part = load.lengths(200, 1.5, random.Random(1))
    assert min(part) == 0.3 and max(part) == 30.0 and 1.2 < sum(part) / len(part) < 2.6
    rows = load.cut_rows(Path("a.flac"), 250.0, iter(part), random.Random(1))
    assert len({row["id"] for row in rows}) == 200
    assert all(row["offset"] >= 0 and row["offset"] + row["duration"] <= 250.01 for row in rows)
