"""What the README and the performance page show is what happens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest


def blocks(path: Path, language: str) -> list[str]:
    """The code blocks of one language in a document."""
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run_python(program: str, folder: Path) -> str:
    """Standard output of `program`, run in `folder`."""
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_result_row_shown_is_the_recorded_one(repo_root: Path, demo_manifest: Path) -> None:
    (block,) = blocks(repo_root / "README.md", "json")
    row = json.loads(block)
    recorded = (repo_root / "tests" / "golden" / "demo.txt").read_text(encoding="utf-8").splitlines()
    assert f"{row['id']}\t{row['pred_text']}" in recorded
    given = [json.loads(line) for line in demo_manifest.read_text(encoding="utf-8").splitlines()]
    (source,) = [line for line in given if line["id"] == row["id"]]
    assert list(row.items())[: len(source)] == list(source.items())


@pytest.mark.weights
def test_the_python_of_the_readme_runs(repo_root: Path) -> None:
    printed = run_python("\n".join(blocks(repo_root / "README.md", "python")), repo_root).splitlines()
    assert printed[0] == "LJ001-0002 in being comparatively modern."
    assert printed[1].startswith("no-such-file no-such-file.wav: ")
    assert printed[2] == "in being comparatively modern."


@pytest.mark.weights
def test_the_python_of_the_performance_page_runs(repo_root: Path) -> None:
    printed = run_python("\n".join(blocks(repo_root / "docs" / "performance.md", "python")), repo_root)
    for name in ("features", "encoder", "decode", "collate_wait", "useful_samples", "padded_samples"):
        assert name in printed
