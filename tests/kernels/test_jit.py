"""Kernels are compiled once, kept under everything they depend on, and their faults are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from oasr.errors import OasrError
from oasr.kernels import jit

pytestmark = pytest.mark.skipif(not jit.available(), reason="needs cuda-core (pip install '.[cuda]')")
ADD = """#pragma once
#include "oasr/number.h"
extern "C" __global__ void add(float* x) { x[threadIdx.x] += number() + BY; }
"""


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of headers, and an empty cache."""
    folder = tmp_path / "include" / "oasr"
    folder.mkdir(parents=True)
    (folder / "number.h").write_text("#pragma once\n__device__ inline float number() { return 1; }\n")
    (folder / "add.cuh").write_text(ADD)
    monkeypatch.setattr(jit, "_include_folder", lambda: tmp_path / "include")
    monkeypatch.setenv("OASR_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def code(by: str = "2", header: str = "oasr/add.cuh") -> jit.DeviceCode:
    return jit.DeviceCode(header, "add", (("BY", by),))


def kept(headers: Path) -> list[Path]:
    return sorted((headers.parents[1] / "cache" / "kernels").glob("*"))


def test_what_was_compiled_is_not_compiled_again(headers: Path, monkeypatch) -> None:
    first = jit.compiled(code(), "sm_90")
    assert [path.name.startswith("add-sm_90-") for path in kept(headers)] == [True]
    monkeypatch.setattr(jit, "_compile", None)
    assert jit.compiled(code(), "sm_90") == first


def test_everything_it_depends_on_is_in_its_name(headers: Path, monkeypatch) -> None:
    changes = [lambda: jit.compiled(code(), "sm_80"), lambda: jit.compiled(code("3"), "sm_90")]
    jit.compiled(code(), "sm_90")
    for number, change in enumerate(changes, 2):
        change()
        assert len(kept(headers)) == number
    (headers / "number.h").write_text("__device__ inline float number() { return 5; }\n")
    jit.compiled(code(), "sm_90")
    assert len(kept(headers)) == 4
    monkeypatch.setattr(jit, "_compiler_version", lambda: "99.0")
    jit.compiled(code(), "sm_90")
    assert len(kept(headers)) == 5


def test_a_cache_that_cannot_be_written_costs_time_alone(headers: Path, monkeypatch) -> None:
    (headers.parents[1] / "file").write_text("")
    monkeypatch.setenv("OASR_CACHE_DIR", str(headers.parents[1] / "file"))
    assert jit.compiled(code(), "sm_90")[:4] == b"\x7fELF"


def test_an_include_is_taken_once(headers: Path) -> None:
    (headers / "twice.cuh").write_text('#include "oasr/number.h"\n' + ADD)
    assert jit._source("oasr/twice.cuh").count("number() { return 1; }") == 1


def test_faults_name_the_kernel(headers: Path) -> None:
    (headers / "add.cuh").write_text(ADD.replace("number()", "no_such_thing()"))
    with pytest.raises(
        OasrError, match=r"kernel add of oasr/add.cuh does not compile for sm_90(.|\n)*no_such"
    ):
        jit.compiled(code(), "sm_90")
    assert kept(headers) == []
    with pytest.raises(OasrError, match=r"header oasr/gone.cuh cannot be read"):
        jit.compiled(code(header="oasr/gone.cuh"), "sm_90")


def test_the_headers_lie_in_the_checkout_or_the_package(tmp_path: Path, monkeypatch) -> None:
    checkout, package = tmp_path / "a", tmp_path / "b" / "lib" / "oasr"
    (checkout / "include" / "oasr").mkdir(parents=True)
    (package / "include" / "oasr").mkdir(parents=True)
    monkeypatch.setattr(jit, "__file__", str(checkout / "engine" / "oasr" / "kernels" / "jit.py"))
    assert jit._include_folder() == checkout / "include"
    monkeypatch.setattr(jit, "__file__", str(package / "kernels" / "jit.py"))
    assert jit._include_folder() == package / "include"
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "c" / "oasr" / "kernels" / "jit.py"))
    with pytest.raises(OasrError, match="headers are missing"):
        jit._include_folder()


def test_a_cpu_runs_no_kernel() -> None:
    assert not jit.usable(torch.device("cpu"))


@pytest.mark.gpu
def test_a_kernel_runs_on_the_current_stream(headers: Path) -> None:
    x = torch.arange(4, dtype=torch.float32, device="cuda")
    jit.launch(code(), x.device, (1, 4), (x,))
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        jit.launch(code("4"), x.device, (1, 4), (x,))
    torch.cuda.synchronize()
    assert x.tolist() == [8, 9, 10, 11]
