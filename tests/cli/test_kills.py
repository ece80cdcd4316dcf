"""SIGKILL again and again at random points of a run: the last resume leaves what an unbroken run leaves."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

# OASR_KILLS=50 is the long form of the test.
KILLS = int(os.environ.get("OASR_KILLS", "10"))


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in ("run.json", ".oasr-files.jsonl")
    }


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds what is written by /proc")
def test_kills_at_random_points_lose_nothing(oasr, engines, manifest, tmp_path, kill_server):
    listed, out, whole = manifest(60, '{"id": "gone", "audio": "gone.wav"}'), tmp_path / "out", tmp_path / "w"
    command = ["transcribe", str(listed), "--resume", "-f", "txt,kaldi"]
    points, killed, held = random.Random(KILLS), 0, 0
    reach = max(6, 600 // KILLS)  # a run makes some four changes a row, and some at its ends
    for _ in range(KILLS):
        code = kill_server([*command, "-o", str(out)], points.randint(1, reach), out)
        assert code in (-9, 3)
        killed += code == -9
        results = out / "results.jsonl"
        lines = results.read_bytes().count(b"\n") if results.exists() else 0
        assert lines >= held  # a row that is written stays written
        held = lines
        if (out / "run.json").exists():
            assert json.loads((out / "run.json").read_text())["state"] in ("running", "finished")
    assert killed >= KILLS // 2
    assert oasr(*command, "-o", out).code == 3
    assert oasr(*command, "-o", whole).code == 3
    assert _contents(out) == _contents(whole)
    old, new = (json.loads((folder / "run.json").read_text()) for folder in (out, whole))
    assert old["state"] == new["state"] == "finished" and old["counts"] == new["counts"]
