"""Size budgets: prints every offender as file:line and exits 1 when there is one.

    python ci/sizes.py [ROOT]

Stops: a file of more than 400 lines, a function body of more than 60 (its docstring left out), more
than 5 parameters (`self`, `cls`, `*args` and `**kwargs` left out), `csrc/module.cpp` of more than 40
lines. Two kinds of function take as many parameters as they like: the commands of `oasr_cli/commands`,
where each flag is one, and those of `tests`, where each fixture is one.
Comment and docstring lines per 100 lines of code are reported, not judged.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE_LINES, BODY_LINES, PARAMETERS, MODULE_LINES = 400, 60, 5, 40
PYTHON_FOLDERS = ("engine", "oasr_cli", "ci", "tests")
NATIVE_FOLDERS = ("csrc", "include")
NATIVE_SUFFIXES = {".cc", ".cpp", ".h", ".hpp", ".cuh", ".cu"}
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Counts:
    """Line counts of one tree: files, and lines of code, comment and docstring."""

    files: int = 0
    code: int = 0
    comment: int = 0
    docstring: int = 0


def main(root: Path) -> int:
    """Check every source file under `root`; 0 when all keep to the budgets."""
    offenders = [line for path in native_files(root) for line in check_native(path, root)]
    for folder in PYTHON_FOLDERS:
        counts = Counts()
        for path in sorted((root / folder).rglob("*.py")):
            offenders += check_python(path, root, counts)
        if counts.code:
            print(
                f"{folder}: {counts.files} files, {counts.code} lines of code, per 100 of them "
                f"{100 * counts.docstring / counts.code:.0f} of docstring and "
                f"{100 * counts.comment / counts.code:.0f} of comment"
            )
    print("\n".join(offenders) or "every file and function keeps to its size")
    return 1 if offenders else 0


def native_files(root: Path) -> Iterator[Path]:
    """C++ and CUDA sources and headers."""
    for folder in NATIVE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in NATIVE_SUFFIXES:
                yield path


def check_native(path: Path, root: Path) -> list[str]:
    """Offences of one C++ or CUDA file."""
    limit = MODULE_LINES if path.name == "module.cpp" else FILE_LINES
    return check_lines(path.relative_to(root), path.read_text(encoding="utf-8"), limit)


def check_lines(name: Path, text: str, limit: int) -> list[str]:
    """An offence when `text` has more lines than `limit`."""
    lines = len(text.splitlines())
    return [f"{name}:{limit + 1}: the file has {lines} lines, at most {limit}: split it by idea"] * (
        lines > limit
    )


def check_python(path: Path, root: Path, counts: Counts) -> list[str]:
    """Offences of one Python file; its lines are added to `counts`."""
    text, name = path.read_text(encoding="utf-8"), path.relative_to(root)
    tree = ast.parse(text, filename=str(path))
    count(text, tree, counts)
    offences = check_lines(name, text, FILE_LINES)
    in_commands, in_tests = name.parts[:2] == ("oasr_cli", "commands"), name.parts[0] == "tests"
    for node in ast.walk(tree):
        if not isinstance(node, Definition):
            continue
        body = body_lines(node)
        if body > BODY_LINES:
            offences.append(
                f"{name}:{node.lineno}: the body of {node.name} has {body} lines, at most {BODY_LINES}"
            )
        taken = parameters(node)
        exempt = in_tests or (in_commands and not node.name.startswith("_"))
        if taken > PARAMETERS and not exempt:
            offences.append(
                f"{name}:{node.lineno}: {node.name} takes {taken} parameters, at most {PARAMETERS}"
            )
    return offences


def body_lines(node: Definition) -> int:
    """Lines from the first statement after the docstring to the end; 0 when there is none."""
    statements = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1 if statements else 0


def parameters(node: Definition) -> int:
    """Named parameters, `self` and `cls` left out."""
    named = [*node.args.posonlyargs, *node.args.args]
    if named and named[0].arg in ("self", "cls"):
        named = named[1:]
    return len(named) + len(node.args.kwonlyargs)


def count(text: str, tree: ast.Module, counts: Counts) -> None:
    """Add the lines of one file to `counts`; a line with code and a comment counts as code."""
    docstring: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, Definition | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            docstring.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code: set[int] = set()
    comment: set[int] = set()
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comment.add(token.start[0])
        elif token.type not in layout:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= docstring
    counts.files += 1
    counts.code += len(code)
    counts.comment += len(comment - code)
    counts.docstring += len(docstring)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()))
