"""The shipped records, their manifest, and the workflow that gates pull requests with them."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

import pytest
import yaml
from oasr.gate.schema import Entry, Reference, load

ON_A_CPU = {
    *("tiny.en-gate60-float32", "tiny.en-gate60-auto"),
    *("digits-greedy", "digits-beam", "digits-rescoring"),
}
"""Entries whose model and list come with the repository and its extras."""


@pytest.fixture(scope="module")
def reference(repo_root: Path) -> Reference:
    return load(repo_root / "ci" / "wer-reference.json")


@pytest.fixture(scope="module")
def rows(repo_root: Path) -> list[dict]:
    lines = (repo_root / "manifests" / "gate.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_every_entry_is_recorded_with_its_reason(reference):
    keys = {entry.key for entry in reference.entries}
    assert {"tiny.en-gate60-float32", "tiny.en-gate60-auto", "base-gate60-auto"} <= keys
    assert {"tiny.en-bench341-auto", "base-bench341-auto"} <= keys
    assert {"base-awkward34-auto", "base-multi14-auto", "base-zh21-auto"} <= keys
    assert {"digits-greedy", "digits-beam", "digits-rescoring"} <= keys
    assert [entry.key for entry in reference.entries if entry.record is None or not entry.why] == []


def test_records_are_of_the_manifest_as_it_is(reference, repo_root, rows):
    digest = hashlib.sha256((repo_root / "manifests" / "gate.jsonl").read_bytes()).hexdigest()
    shipped = [entry for entry in reference.entries if entry.manifest == "../manifests/gate.jsonl"]
    assert {(entry.manifest_sha256, entry.utterances) for entry in shipped} == {(digest, 60)}
    assert len(rows) == len({row["id"] for row in rows}) == 60


def test_the_tolerance_is_more_than_one_error_and_less_than_a_tenth_of_the_rate(reference):
    for entry in reference.entries:
        # Of 314 characters one is more than the tolerance: that list allows no error more.
        assert 100 / entry.ref_units < reference.tolerance_pct or entry.key == "base-zh21-auto"
        # The digits have hardly an error to begin with.
        assert entry.key.startswith("digits-") or reference.tolerance_pct < entry.error_rate_pct / 10


def test_the_audio_is_small_whole_and_credited(repo_root, rows):
    import soundfile

    folder = repo_root / "manifests"
    files = sorted((folder / "gate").iterdir())
    assert [f"gate/{path.name}" for path in files] == sorted(row["audio"] for row in rows)
    assert sum(path.stat().st_size for path in files) <= 8_000_000
    for row in rows:
        assert soundfile.info(folder / row["audio"]).duration == pytest.approx(row["duration"], abs=2e-3)
    credit = (folder / "README.md").read_text("utf-8") + (folder / "LICENSE-AUDIO.md").read_text("utf-8")
    assert {row["corpus"].partition("/")[0] for row in rows} == {"librispeech", "ljspeech"}
    for words in ("gate/", "LibriSpeech", "CC BY 4.0", "LJ Speech", "public domain"):
        assert words in credit


def test_no_recording_is_in_the_demo_too(demo_manifest, rows):
    demo = {json.loads(line)["id"] for line in demo_manifest.read_text("utf-8").splitlines()}
    assert demo & {row["id"] for row in rows} == set()


def test_the_workflow_runs_the_gate_with_flags_and_entries_that_exist(repo_root, reference):
    import typer.main

    from oasr_cli.app import app

    workflow = yaml.safe_load((repo_root / "ci" / "github-gate.yml").read_text("utf-8"))
    assert True in workflow  # YAML 1.1 reads the key `on` as a boolean
    assert "pull_request" in workflow[True]
    (job,) = workflow["jobs"].values()
    (step,) = [step for step in job["steps"] if "oasr gate" in step.get("run", "")]
    command, pipe, _ = step["run"].partition("|")
    assert not pipe or step["shell"] == "bash"  # only then a pipe fails when its first command does
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:3] == ["oasr", "gate", "ci/wer-reference.json"]
    known = {name for p in typer.main.get_command(app).commands["gate"].params for name in p.opts}
    assert {word for word in words if word.startswith("--")} <= known
    assert "--strict-assets" in words, "an entry whose list is lost would pass"
    assert {entry.key for entry in chosen(reference, words)} == ON_A_CPU


def chosen(reference: Reference, words: list[str]) -> list[Entry]:
    """The entries that the arguments of `oasr gate` choose."""
    from oasr_cli.commands.gate import select

    return select(reference.entries, [words[i + 1] for i, word in enumerate(words) if word == "--only"])


def test_continuous_integration_runs_what_a_cpu_can(reference, repo_root):
    script = (repo_root / "ci" / "test.sh").read_text("utf-8").replace("\\\n", " ")
    (line,) = (line for line in script.splitlines() if line.startswith("oasr gate "))
    words = shlex.split(line)
    assert "--strict-assets" in words, "an entry whose list is lost would pass"
    entries = chosen(reference, words)
    assert {entry.device for entry in entries} == {"cpu"}, "with --strict-assets all others fail there"
    assert {entry.key for entry in entries} == ON_A_CPU
