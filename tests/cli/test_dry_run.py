"""`--dry-run`: what the list holds and what would fail, without a file being written."""

from __future__ import annotations

import json
import os

import pytest
from oasr.audio.probe import probe
from oasr.errors import AudioError
from oasr.types import Utterance

from oasr_cli.dry_run import SAMPLE, Spread


def test_it_counts_names_and_estimates(oasr, engines, manifest, wav, tmp_path):
    wav("two.wav", samples=48000, channels=2, rate=48000)
    (tmp_path / "page.wav").write_text("<html>")
    (tmp_path / "empty.wav").write_bytes(b"")
    bad = [
        {"id": "gone", "audio": "gone.wav"},
        {"id": "page", "audio": "page.wav"},
        {"id": "empty", "audio": "empty.wav"},
        {"id": "late", "audio": "two.wav", "offset": 5},
        {"id": "odd", "audio": "two.wav", "language": "xx"},
        {"id": "third", "audio": "two.wav", "channel": 2},
        {"audio": 7},
    ]
    two = json.dumps({"id": "two", "audio": "two.wav"})
    done = oasr("transcribe", manifest(3, two, *map(json.dumps, bad)), "--dry-run", "-o", tmp_path / "out")
    assert done.code == 3 and not (tmp_path / "out").exists()
    lines = done.out.splitlines()
    assert lines[0] == "rows: 11 (4 can be read, 7 would fail)"
    assert lines[1] == "audio: 1.3 s (0.00 h), a row 0.1 to 1.0 s, median 0.1 s"
    assert "formats: WAV (4)" in lines and "rates: 16000 Hz (3), 48000 Hz (1)" in lines
    assert "channels: 1 (3), 2 (1)" in lines and "would fail: 2 more" in lines
    assert "gone.wav" in done.out and "past the end" in done.out
    assert lines[-1].startswith("estimated time: ") and "(4 rows, 1.3 s, in " in lines[-1]
    assert set(engines[0].heard) == {"raa", "rab", "rac", "two"}


def test_a_long_list_is_estimated_from_twenty_rows(oasr, engines, manifest):
    assert oasr("transcribe", manifest(50), "--dry-run").code == 0
    assert len(set(engines[0].heard)) == 20 and {"raa", "rbv"} <= set(engines[0].heard)


@pytest.mark.parametrize("count", [0, 1, SAMPLE, 79, 80, 1000, 12345])
def test_a_sample_is_bounded_and_spread_whatever_the_length_of_the_list(count):
    spread = Spread()
    for index in range(count):
        spread.add(Utterance(f"u{index}", index=index), 1.0)
        assert len(spread._rows) < 4 * SAMPLE
    chosen = [row.index for row, _ in spread.chosen()]
    assert len(chosen) == min(count, SAMPLE) and chosen == sorted(set(chosen))
    steps = [b - a for a, b in zip(chosen, [*chosen[1:], count], strict=False)]
    assert not steps or max(steps) <= 2.1 * count / len(chosen)


def test_a_named_pipe_is_left_to_the_run(oasr, engines, manifest, tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    # With an end held open, a reader would wait for what is written and a writer find the pipe still full.
    held = os.open(tmp_path / "pipe.wav", os.O_RDWR)
    try:
        os.write(held, b"once")
        done = oasr("transcribe", manifest(2, '{"id": "p", "audio": "pipe.wav"}'), "--dry-run")
        assert os.read(held, 100) == b"once"
    finally:
        os.close(held)
    assert done.code == 0 and "length unknown before decoding: 1 rows" in done.out
    assert set(engines[0].heard) == {"raa", "rab"}


def test_a_list_without_a_usable_row(oasr, engines, manifest):
    done = oasr("transcribe", manifest(0, '{"id": "gone", "audio": "gone.wav"}'), "--dry-run")
    assert done.code == 1 and "estimated time: none" in done.out


def test_it_refuses_what_the_run_would_refuse(oasr, engines, manifest, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").touch()
    done = oasr("transcribe", manifest(1), "--dry-run", "-o", tmp_path / "out")
    assert done.code == 2 and "--overwrite" in done.err and engines == []


def test_it_refuses_a_format_that_stdout_cannot_hold(oasr, engines, manifest, wav, tmp_path):
    flags = ("--dry-run", "-f", "txt")
    done = oasr("transcribe", manifest(2), *flags)
    assert done.code == 2 and "--format txt: stdout takes the document of one recording" in done.err
    split = oasr("transcribe", manifest(1), *flags, "--channel", "split")
    assert split.code == 2 and engines == []
    assert oasr("transcribe", manifest(1), *flags).code == 0
    assert oasr("transcribe", manifest(2), *flags, "-o", tmp_path / "out").code == 0


def test_it_refuses_channels_that_would_go_by_another_rows_id(oasr, engines, manifest):
    listed = manifest(1, '{"id": "raa-ch0", "audio": "raa.wav"}')
    done = oasr("transcribe", listed, "--dry-run", "--channel", "split")
    assert done.code == 2 and "'raa-ch0'" in done.err and engines == []
    assert oasr("transcribe", listed, "--dry-run").code == 0


def test_a_run_that_goes_on_is_told_what_is_there_already(oasr, engines, manifest, tmp_path):
    listed, out = manifest(4), tmp_path / "out"
    assert oasr("transcribe", listed, "-o", out, "-f", "srt").code == 0
    results = out / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-9])
    before = {path: path.read_bytes() for path in out.iterdir()}
    done = oasr("transcribe", listed, "-o", out, "--resume", "--dry-run")
    last = done.out.splitlines()[-1]
    assert done.code == 0 and last.startswith("results of an earlier run: 3, kept; ")
    assert engines[1].options.word_timestamps, "the formats of the earlier run are written again"
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    assert oasr("transcribe", listed, "-o", out, "--resume", "--dry-run", "--language", "de").code == 2


@pytest.mark.parametrize(("flags", "words"), [([], True), (["--no-word-timestamps"], False)])
def test_the_estimate_pays_for_the_word_times_that_a_format_asks_for(oasr, engines, manifest, flags, words):
    assert oasr("transcribe", manifest(1), "--dry-run", "-f", "srt", *flags).code == 0
    assert engines[0].options.word_timestamps is words


@pytest.mark.parametrize(
    ("row", "seconds"),
    [({}, 1.0), ({"offset": 0.25}, 0.75), ({"offset": 0.5, "duration": 9.0}, 0.5), ({"duration": 0.1}, 0.1)],
)
def test_a_probe_measures_the_stretch(wav, row, seconds):
    found = probe(Utterance("a", str(wav("a.wav", samples=16000)), **row))
    assert (found.container, found.sample_rate, found.channels) == ("WAV", 16000, 1)
    assert found.duration_s == pytest.approx(seconds)


def test_a_probe_runs_no_command():
    with pytest.raises(AudioError, match="command"):
        probe(Utterance("a", command="touch /tmp/never |"))
