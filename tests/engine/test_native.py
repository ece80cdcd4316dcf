"""The compiled module, its stub and its headers agree with each other."""

import ast
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import oasr
import pytest
from oasr.errors import OasrError
from oasr.native import extension

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "engine" / "oasr" / "_C.pyi"


def public(module):
    return {name for name in dir(module) if not name.startswith("_")}


def test_the_stub_names_what_the_module_has():
    module = extension()
    declared = {
        node.name: node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef)
    }
    assert set(declared) == public(module)
    for name, node in declared.items():
        functions = {
            f.name: [a.arg for a in f.args.args] for f in node.body if isinstance(f, ast.FunctionDef)
        }
        submodule = getattr(module, name)
        classes = {c.name for c in node.body if isinstance(c, ast.ClassDef)}
        assert classes == {name for name in public(submodule) if isinstance(getattr(submodule, name), type)}
        assert set(functions) | classes == public(submodule)
        for function, arguments in functions.items():
            signature = getattr(submodule, function).__doc__.splitlines()[0]
            assert re.findall(r"[(,]\s*(\w+):", signature) == arguments


def ticks_of_another_thread_during_a_call():
    samples = np.zeros(30_000_000, np.float32)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        begin = time.perf_counter()
        extension().segmentation.plan_windows(samples, 16000, 480000)
        end = time.perf_counter()
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    return sum(begin < t < end for t in ticks)


def test_a_call_releases_the_interpreter():
    # A busy machine may keep the other thread from running in one call, hardly in twenty.
    assert any(ticks_of_another_thread_during_a_call() > 2 for _ in range(20))


@pytest.mark.parametrize(
    ("samples", "rate", "limit", "word"),
    [
        (np.zeros((2, 2), np.float32), 16000, 10, "samples"),
        (np.zeros(2, np.float32), 0, 10, "sample_rate"),
        (np.zeros(2, np.float32), 16000, 0, "limit"),
    ],
)
def test_arguments_are_checked(samples, rate, limit, word):
    with pytest.raises(ValueError, match=word):
        extension().segmentation.plan_windows(samples, rate, limit)


def test_a_missing_extension_names_the_command_that_builds_it(monkeypatch):
    extension.cache_clear()
    monkeypatch.setitem(sys.modules, "oasr._C", None)
    monkeypatch.delattr(oasr, "_C", raising=False)
    try:
        with pytest.raises(OasrError, match="pip install -e"):
            extension()
    finally:
        extension.cache_clear()


def test_importing_the_package_loads_neither_torch_nor_the_extension():
    code = "import sys, oasr; print(sorted({'torch', 'oasr._C', 'soundfile', 'av'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_headers_are_free_of_python_and_torch_and_stand_beside_the_package():
    headers = [*(ROOT / "include" / "oasr").rglob("*.h"), *(ROOT / "include" / "oasr").rglob("*.cuh")]
    assert headers
    for header in headers:
        assert not re.search(r"#\s*include\s*[<\"](pybind11|Python|torch|ATen|c10)", header.read_text()), (
            header
        )
    installed = {p.name for folder in oasr.__path__ for p in Path(folder).glob("include/oasr/*.h")}
    assert {h.name for h in headers if h.suffix == ".h"} <= installed


def test_the_extension_stays_on_one_screen():
    module = (ROOT / "csrc" / "module.cpp").read_text()
    assert len(module.splitlines()) <= 40
    stems = {p.stem.removeprefix("bind_") for p in (ROOT / "csrc").glob("bind_*.cpp")}
    assert stems == set(re.findall(r"^  bind_(\w+)\(m\);", module, re.MULTILINE))
    for stem in stems:
        # One file an idea, or a folder of its parts.
        assert (ROOT / "csrc" / f"{stem}.cc").is_file() or list((ROOT / "csrc" / stem).glob("*.cc"))
        assert list((ROOT / "include" / "oasr").glob(f"{stem}*.h"))
