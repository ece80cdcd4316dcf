"""The watch over a run of hours: the recording that it makes, and what it reports of a short one."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import soundfile


@pytest.fixture(scope="module")
def script(repo_root: Path) -> ModuleType:
    sys.path.insert(0, str(repo_root / "ci"))
    try:
        return importlib.import_module("long_memory")
    finally:
        sys.path.pop(0)


def test_a_list_is_repeated_until_the_recording_is_long_enough(script, demo_manifest, tmp_path) -> None:
    path = script.joined(demo_manifest, 100.25, tmp_path / "long.wav")
    info = soundfile.info(path)
    assert (info.frames, info.samplerate, info.channels) == (round(100.25 * 16000), 16000, 1)


def test_a_run_is_watched_to_its_end(script, repo_root, monkeypatch, capsys) -> None:
    recording = repo_root / "manifests" / "digits" / "001.flac"
    model = repo_root / "tests" / "checkpoints" / "digits-conformer"
    monkeypatch.setattr(sys, "argv", ["x", str(recording), "--", "--model", str(model)])
    assert script.main() == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["duration_s"] == pytest.approx(soundfile.info(recording).duration, abs=0.01)
    assert 100 < max(facts["thirds_mb"]) <= facts["peak_mb"]
    monkeypatch.setattr(sys, "argv", ["x", str(recording), "--", "--vad", "radar"])
    assert script.main() == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["code"] == 2
