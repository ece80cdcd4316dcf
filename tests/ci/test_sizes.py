"""The size check finds what it is meant to find, and nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def sizes(repo_root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("ci_sizes", repo_root / "ci" / "sizes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci_sizes"] = module
    spec.loader.exec_module(module)
    return module


def body(lines: int, docstring: int = 0) -> str:
    """A function with that many body lines behind a docstring of that many lines."""
    doc = '    """Doc.\n' + "    more\n" * (docstring - 2) + '    """\n' if docstring else ""
    return "def f():\n" + doc + "    x = 1\n" * lines


CASES = [
    ("engine/a.py", "x = 1\n" * 400, None),
    ("engine/a.py", "x = 1\n" * 401, "engine/a.py:401: the file has 401 lines"),
    ("engine/a.py", body(60, docstring=30), None),
    ("engine/a.py", "\n" + body(61), "engine/a.py:2: the body of f has 61 lines"),
    ("engine/a.py", "def f(a, b, c, d, e, *args, **kwargs): ...\n", None),
    ("engine/a.py", "class A:\n    def f(self, a, b, c, d, e): ...\n", None),
    ("engine/a.py", "def f(a, b, c, d, *, e, g): ...\n", "engine/a.py:1: f takes 6 parameters"),
    ("oasr_cli/commands/a.py", "def f(a, b, c, d, e, g): ...\n", None),
    ("oasr_cli/commands/a.py", "def _f(a, b, c, d, e, g): ...\n", "commands/a.py:1: _f takes 6"),
    ("oasr_cli/a.py", "def f(a, b, c, d, e, g): ...\n", "oasr_cli/a.py:1: f takes 6"),
    ("tests/test_a.py", "def test(a, b, c, d, e, g): ...\n", None),
    ("tests/test_a.py", body(61), "tests/test_a.py:1: the body of f has 61 lines"),
    ("csrc/a.cc", "//\n" * 400, None),
    ("include/oasr/a.cuh", "//\n" * 401, "include/oasr/a.cuh:401: the file has 401 lines"),
    ("csrc/module.cpp", "//\n" * 41, "csrc/module.cpp:41: the file has 41 lines, at most 40"),
]


@pytest.mark.parametrize(("name", "text", "offence"), CASES)
def test_offences(
    sizes: ModuleType, tmp_path: Path, capsys, name: str, text: str, offence: str | None
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    code = sizes.main(tmp_path)
    printed = capsys.readouterr().out
    assert code == (0 if offence is None else 1)
    assert (offence or "every file and function keeps to its size") in printed


def test_densities(sizes: ModuleType, tmp_path: Path, capsys) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "a.py").write_text('"""Doc."""\n\n# why\nx = 1  # beside\ny = """\n# text\n"""\n')
    sizes.main(tmp_path)
    assert (
        "1 files, 4 lines of code, per 100 of them 25 of docstring and 25 of comment"
        in capsys.readouterr().out
    )
