"""The documents and the tree agree, and `import oasr` stays light."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/formats.md", "manifests/README.md")
USER_DOCUMENTS = ("README.md", "docs/formats.md", "manifests/README.md")
SOURCES = ("engine", "oasr_cli", "ci", "tests")
SUFFIX = re.compile(r"\.(py|pyi|md|toml|ini|sh|cc|cpp|h|cuh|jsonl|json|txt|tsv)$")
LIGHT = """
import sys
{statement}
heavy = [name for name in ("torch", "oasr._C", "transformers", "soundfile", "av") if name in sys.modules]
raise SystemExit(", ".join(heavy) or 0)
"""


def code_spans(text: str) -> list[str]:
    """What stands between single backticks outside code blocks."""
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


def named_paths(text: str) -> set[str]:
    """Paths of the project that a document names: linked, or in backticks with a suffix or a last slash."""
    spans = {
        span for span in code_spans(text) if re.fullmatch(r"[\w./-]+", span) and "/" in span.lstrip("./")
    }
    paths = {span for span in spans if span.endswith("/") or SUFFIX.search(span)}
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link}
    return {*paths, *links} - {""}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_named_path_exists(document: str, repo_root: Path) -> None:
    source = repo_root / document
    named = named_paths(source.read_text(encoding="utf-8"))
    missing = sorted(p for p in named if not ((repo_root / p).exists() or (source.parent / p).exists()))
    assert named, f"{document} names no path: has its form changed?"
    assert not missing, f"{document} names paths that do not exist: {', '.join(missing)}"


@pytest.mark.parametrize("document", ("CONTRIBUTING.md", "docs/architecture.md"))
def test_every_named_symbol_exists(document: str, repo_root: Path) -> None:
    text = (repo_root / document).read_text(encoding="utf-8")
    names = {span.removesuffix("()") for span in code_spans(text)}
    symbols = {n for n in names if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", n) and not SUFFIX.search(n)}
    code = "\n".join(
        path.read_text(encoding="utf-8") for folder in SOURCES for path in (repo_root / folder).rglob("*.py")
    )
    known = set(re.findall(r"\w+", code + (repo_root / "pyproject.toml").read_text(encoding="utf-8")))
    missing = sorted(name for name in symbols if not set(name.split(".")) <= known)
    assert symbols, f"{document} names no symbol: has its form changed?"
    assert not missing, f"{document} names what no source file contains: {', '.join(missing)}"


@pytest.mark.parametrize("document", USER_DOCUMENTS)
def test_every_flag_of_a_document_exists(document: str, repo_root: Path) -> None:
    import typer.main

    from oasr_cli.app import app

    group = typer.main.get_command(app)
    known = {"--help", "--version"}
    for command in _commands(group):
        for parameter in command.params:
            known.update([*parameter.opts, *parameter.secondary_opts])
    text = (repo_root / document).read_text(encoding="utf-8")
    own = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("pip ", "python3 ")))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", own))
    assert named, f"{document} names no flag: has its form changed?"
    assert named <= known, f"{document} names flags that no command has: {', '.join(sorted(named - known))}"


def _commands(command: object) -> list:
    children = getattr(command, "commands", {})
    return [command, *(leaf for child in children.values() for leaf in _commands(child))]


def test_the_readme_holds_the_one_test_command_that_ci_runs(repo_root: Path) -> None:
    lines = (repo_root / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [
        line for line in lines if line.startswith("python3 -m venv .venv ") and line.endswith("ci/test.sh")
    ]
    assert len(commands) == 1
    pattern = re.search(
        r"grep -E '([^']+)' README\.md", (repo_root / ".ci" / "run").read_text(encoding="utf-8")
    )
    assert pattern is not None and re.search(pattern[1], commands[0])


def test_public_names_are_sorted_few_and_real() -> None:
    import oasr

    assert oasr.__all__ == sorted(oasr.__all__)
    assert len(oasr.__all__) <= 15
    assert [name for name in oasr.__all__ if getattr(oasr, name, None) is None] == []


@pytest.mark.parametrize("statement", ("import oasr", "import oasr_cli.app"))
def test_importing_stays_light(statement: str) -> None:
    program = LIGHT.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, f"`{statement}` loads {done.stderr.strip()}"


def test_no_name_of_the_engine_is_imported_from_its_folder(repo_root: Path) -> None:
    # With the checkout as working directory the folder `engine` is importable too: a second copy of
    # every module, and of every registry.
    pattern = re.compile(r"^\s*(from|import) engine\b", re.MULTILINE)
    guilty = [
        str(path.relative_to(repo_root))
        for folder in SOURCES
        for path in (repo_root / folder).rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert guilty == []
