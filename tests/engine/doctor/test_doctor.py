"""The doctor's findings: what is sound is said so, and what is broken has the command that mends it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from oasr import doctor
from oasr.doctor import codecs, compiled, finding, models, packages, room
from oasr.errors import OasrError


def _only(found):
    (one,) = found
    return one


def test_a_check_that_breaks_is_a_finding_and_the_others_still_run():
    def check_broken(_):
        raise RuntimeError("odd")
        yield

    found = list(doctor.examine("tiny.en", (check_broken, packages.check_python)))
    assert [(one.name, one.status) for one in found] == [("broken", "fails"), ("python", "ok")]
    assert "odd" in found[0].found and found[0].mend


def test_a_package_that_is_missing_or_old_is_named_with_its_command(monkeypatch):
    wanted = ["numpy>=1.26", "numpy>=99", "no-such-package>=3", "pytest>=8; extra == 'dev'"]
    monkeypatch.setattr(packages, "requires", lambda _: wanted)
    found = {one.name: one for one in packages.check_packages("")}
    assert found["numpy"].status == "fails" and found["numpy"].mend == "pip install 'numpy>=99'"
    assert found["no-such-package"].mend == "pip install 'no-such-package>=3'"
    assert found["packages"].found.startswith("numpy ") and "pytest" not in found["packages"].found


def test_an_old_python_fails(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    assert _only(packages.check_python("")).status == "fails"


def test_a_torchaudio_that_does_not_load_fails(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchaudio", None)
    found = _only(packages.check_torch(""))
    assert (found.name, found.status) == ("torchaudio", "fails") and "torch torchaudio" in found.mend


def test_a_missing_extension_fails(monkeypatch):
    def missing():
        raise OasrError("the compiled part is missing")

    monkeypatch.setattr("oasr.native.extension", missing)
    found = _only(compiled.check_extension(""))
    assert found.status == "fails" and "pip install" in found.mend


def test_no_gpu_is_fine_and_an_unused_one_is_told(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(compiled.shutil, "which", lambda _: None)
    assert _only(compiled.check_gpu("")).status == "ok"
    monkeypatch.setattr(compiled.shutil, "which", lambda _: "/usr/bin/nvidia-smi")
    found = _only(compiled.check_gpu(""))
    assert found.status == "warning" and found.mend


def test_a_kernel_that_does_not_compile_is_told(monkeypatch):
    from oasr.kernels import jit

    def broken(code, arch):
        raise OasrError("kernel oasr_ctc_beam does not compile")

    monkeypatch.setattr(jit, "available", lambda: True)
    monkeypatch.setattr(jit, "compiled", broken)
    found = _only(compiled.check_kernels(""))
    assert found.status == "warning" and "[cuda]" in found.mend


def test_every_container_comes_back():
    found = list(codecs.check_codecs(""))
    assert [one.status for one in found] == ["ok"] * len(found), found
    assert found[0].found.split(", ")[:3] == ["wav", "wav/u-law", "flac"]


def test_a_container_that_comes_back_wrong_is_named(monkeypatch):
    wav = codecs.SAMPLES["wav"]
    monkeypatch.setattr(
        codecs,
        "SAMPLES",
        {
            "short": lambda samples: wav(samples[:800]),
            "silent": lambda samples: wav(np.zeros_like(samples)),
            "garbage": lambda samples: b"<html>",
        },
    )
    found = {one.name: one for one in codecs.check_codecs("")}
    assert "0.05 s" in found["codec short"].found and "0.000" in found["codec silent"].found
    assert found["codec garbage"].mend and found["codecs"].status == "fails"


def test_a_model_that_is_not_here_fails_with_the_way_to_get_it(monkeypatch):
    from oasr.checkpoints import catalog

    monkeypatch.setattr(catalog, "installed", lambda name: False)
    found = _only(models.check_models("tiny.en"))
    assert found.status == "fails" and "[tiny-en]'" in found.mend
    assert _only(models.check_models("tinny")).status == "fails"


def test_a_model_that_was_changed_fails_when_it_is_the_one_asked_for(monkeypatch, tmp_path):
    from oasr.checkpoints import catalog

    check = catalog.FileCheck(tmp_path / "model.bin", "a", "b")
    monkeypatch.setattr(catalog, "installed", lambda name: name == "base")
    monkeypatch.setattr(catalog, "verify", lambda name: [check])
    assert _only(models.check_models("base")).status == "fails"
    first, _ = models.check_models("tiny.en")
    assert first.status == "warning" and "model.bin" in first.found


def test_a_checkpoint_folder_is_recognised(repo_root, tmp_path):
    folder = repo_root / "tests" / "checkpoints" / "digits-conformer"
    found = list(models.check_models(str(folder)))[-1]
    assert found.status == "ok" and "wenet" in found.found
    assert list(models.check_models(str(tmp_path)))[-1].status == "fails"


@pytest.mark.parametrize(
    ("asked", "mend"),
    [("owner/name", "hf download owner/name"), ("owner/name@v2", "hf download owner/name --revision v2")],
)
def test_a_model_of_the_hub_is_looked_for_and_never_fetched(monkeypatch, repo_root, asked, mend):
    from oasr.checkpoints import hub

    monkeypatch.setattr(hub, "download", lambda *_: pytest.fail("a check must not download"))
    monkeypatch.setattr(hub, "present", lambda *_: None)
    found = list(models.check_models(asked))[-1]
    assert (found.status, found.found, found.mend) == ("fails", "not on this machine", mend)
    here = repo_root / "tests" / "checkpoints" / "digits-conformer"
    monkeypatch.setattr(hub, "present", lambda *_: here)
    monkeypatch.setattr(hub, "cached", lambda *_: here)
    assert list(models.check_models(asked))[-1].status == "ok"


def test_little_room_is_told(monkeypatch):
    monkeypatch.setattr(room, "_free_memory", lambda: 2**20)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 0}))
    found = list(room.check_room(""))
    assert [one.status for one in found] == ["warning"] * 4 and all(one.mend for one in found)


def test_a_cache_that_cannot_be_kept_is_told(monkeypatch):
    monkeypatch.setattr(room, "cache_dir", lambda: Path(os.devnull, "oasr"))
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 2**40}))
    first = next(room.check_room(""))
    assert (
        first.status == "warning"
        and "may not be written to" in first.found
        and "OASR_CACHE_DIR" in first.mend
    )


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("warning", 0), ("fails", 1)])
def test_the_command_prints_findings_and_exits_by_them(monkeypatch, capsys, status, code, json):
    import typer

    from oasr_cli.commands.doctor import doctor as command

    one = finding.Finding("disk", status, "full", "make room" if status != "ok" else "")
    monkeypatch.setattr(doctor, "examine", lambda model: iter([one]))
    ended = 0
    try:
        command("tiny.en", json)
    except typer.Exit as exit:
        ended = exit.exit_code
    out = capsys.readouterr().out
    assert ended == code and "full" in out
    assert ("mend: make room" in out) == (status != "ok" and not json)
    assert ('"works": false' in out) == (json and status == "fails")
