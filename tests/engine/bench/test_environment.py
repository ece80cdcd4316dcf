import hashlib
import json
import platform
import subprocess
from datetime import datetime, timezone
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.fake_engines import make_engine
from oasr.bench import environment, memory
from oasr.bench.memory import PeakMemory
from oasr.checkpoints.cache import weights_sha256


@pytest.fixture
def engine(monkeypatch):
    with make_engine(monkeypatch, workers=3) as made:
        yield made


def test_the_machine_and_the_versions_are_told(engine):
    told = environment.describe(engine)
    json.dumps(told, allow_nan=False)
    assert told["python"] == platform.python_version()
    assert told["packages"]["torch"] == torch.__version__.partition("+")[0] or torch.__version__
    assert told["threads"] == torch.get_num_threads() and told["reader_threads"] == 3
    assert told["cpu"] and told["cores"] >= 1 and told["gpu"] is None
    age = datetime.now(timezone.utc) - datetime.fromisoformat(told["date"])
    assert age.total_seconds() < 3600


def git(folder, *arguments):
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    done = subprocess.run(["git", "-C", folder, *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_is_that_of_the_code_and_of_nothing_else(tmp_path):
    package = tmp_path / "engine" / "oasr"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "note").write_text("a")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "note")
    git(tmp_path, "commit", "-qm", "somebody's repository")
    assert environment.commit_of(package) is None  # installed there, not tracked there
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "the code")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert environment.commit_of(package) == (head, False)
    (tmp_path / "note").write_text("b")
    assert environment.commit_of(package) == (head, True)


def test_without_git_there_is_no_commit(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.commit_of(tmp_path) is None
    assert environment.gpu_driver() is None


def test_the_driver_is_what_nvidia_smi_says(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 580.1.2\necho 580.1.2\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert environment.gpu_driver() == "580.1.2"


def test_a_gpu_is_named(engine, monkeypatch):
    monkeypatch.setattr(engine, "device", torch.device("cuda", 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Test GPU {device.index}")
    monkeypatch.setattr(environment, "gpu_driver", lambda: "580.1.2")
    told = environment.describe(engine)
    assert (told["gpu"], told["gpu_driver"], told["cuda"]) == ("Test GPU 0", "580.1.2", torch.version.cuda)


def test_the_model_is_known_by_the_digest_of_its_weights(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path / "cache"))
    assert environment.model_facts(engine)["sha256"] is None
    weights = tmp_path / "model.bin"
    weights.write_bytes(b"weights")
    engine.model.checkpoint = SimpleNamespace(format="ctranslate2", files={"weights": weights})
    facts = environment.model_facts(engine)
    assert facts["sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert (facts["architecture"], facts["format"]) == ("fake", "ctranslate2")


def test_every_shard_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("a.safetensors", "b.safetensors"):
        (tmp_path / name).write_bytes(name.encode())
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "a.safetensors"}})
    )
    before = weights_sha256(index)
    listing = subprocess.run(
        ["sha256sum", "a.safetensors", "b.safetensors"], cwd=tmp_path, capture_output=True, check=True
    )
    assert before == hashlib.sha256(listing.stdout).hexdigest()
    (tmp_path / "b.safetensors").write_bytes(b"other weights")
    assert weights_sha256(index) != before


def test_the_peak_is_of_what_came_after_the_start():
    first = PeakMemory()
    if first.scope != "run":
        pytest.skip("this system cannot forget a peak of resident memory")
    before = first.resident_bytes()
    assert before >= first.start_bytes > 2**20
    block = np.ones(2**25)  # 256 MiB
    del block
    assert first.resident_bytes() >= before + 200 * 2**20
    assert PeakMemory().resident_bytes() < before + 100 * 2**20


def test_without_a_way_to_forget_the_peak_is_that_of_the_process(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_CLEAR", tmp_path / "no" / "clear_refs")
    peak = PeakMemory()
    assert peak.scope == "process" and peak.resident_bytes() > 2**20


def test_the_peak_of_a_gpu_is_reset_and_read_on_its_device(monkeypatch):
    calls = []
    fake = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 2,
        empty_cache=lambda: calls.append("empty"),
        reset_peak_memory_stats=lambda device: calls.append(f"reset {device}"),
        max_memory_reserved=lambda device: 1000 + device.index,
    )
    monkeypatch.setattr(memory, "_cuda", lambda: fake)
    peak = PeakMemory()
    assert calls == ["empty", "reset 0", "empty", "reset 1"]
    assert peak.gpu_bytes(torch.device("cuda", 1)) == 1001
    assert peak.gpu_bytes(torch.device("cpu")) is None
