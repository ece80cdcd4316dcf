"""What a hostile list, id or output folder cannot do: run a command, or write anywhere but in the folder."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest
from oasr.output.name_book import RECORD_NAME
from oasr.output.writers import WRITERS, build_writers

CODE = ("engine/oasr", "oasr_cli")
BUILTINS = {("", "eval"), ("", "exec")}
"""Not the methods of these names: `model.eval()` evaluates no code."""
FORBIDDEN = {
    "popen", "extractall", "unpack_archive", "unsafe_load", "full_load", "spawnl", "execv",
    "getoutput", "getstatusoutput",
}  # fmt: skip
FORBIDDEN_IN = {
    "os": {"system"},
    "shutil": {"unpack_archive"},
    "archive": {"extract"},
    "pickle": {"load", "loads"},
    "yaml": {"load"},
    "tarfile": {"open", "TarFile"},
    "marshal": {"loads"},
}
HOSTILE = [
    "../up", "/etc/oasr-up", "a/../../up", "..", ".", "C:\\up", "..\\up", "nul\0byte", "x" * 300, "é" * 150,
    "con", "NUL.txt", "aux", "LPT1", "trail. ", "link", "dangling", "results", "run", ".oasr-files", "a|b",
    "-rf", "$(touch up)", "`touch up`", "new\nline", "\u202egnp", "~root", "%2e%2e%2fup",
]  # fmt: skip


def calls(tree: ast.AST) -> list[tuple[str, str, ast.Call]]:
    """(module or object, name, call) of every call."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.append((getattr(node.func.value, "id", ""), node.func.attr, node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.append(("", node.func.id, node))
    return found


def test_one_place_alone_can_run_a_shell_and_nothing_unpacks_or_unpickles(repo_root: Path) -> None:
    shells, others, loads = [], [], []
    for path in sorted(file for folder in CODE for file in (repo_root / folder).rglob("*.py")):
        for owner, name, call in calls(ast.parse(path.read_text("utf-8"))):
            place = f"{path.relative_to(repo_root)}:{call.lineno} {owner}.{name}"
            keywords = {word.arg: word.value for word in call.keywords}
            shell = keywords.get("shell")
            if shell is not None and getattr(shell, "value", True) is not False:
                shells.append(place.split(":")[0])
            if (owner, name) in BUILTINS or name in FORBIDDEN or name in FORBIDDEN_IN.get(owner, ()):
                others.append(place)
            if (owner, name) == ("torch", "load"):
                loads.append(getattr(keywords.get("weights_only"), "value", None))
    assert shells == ["engine/oasr/audio/source.py"]
    # The launcher's own processes hand each other windows and results; no file is read there.
    assert {place.split(":")[0] for place in others} <= {
        "engine/oasr/launch/worker.py",
        "engine/oasr/launch/fleet.py",
    }
    assert loads and all(only is True for only in loads)


def test_a_command_of_a_list_runs_with_allow_pipes_alone(oasr, engines, wav, tmp_path) -> None:
    clip, marker, data = wav("a.wav"), tmp_path / "marker", tmp_path / "data"
    data.mkdir()
    (data / "wav.scp").write_text(f"good {clip}\nevil touch {marker}; cat {clip} |\n")
    done = oasr("transcribe", data)
    assert done.code == 3 and not marker.exists()
    assert "--allow-pipes" in done.rows[1]["error"]["message"]
    assert oasr("transcribe", data, "--dry-run").code in (0, 3) and not marker.exists()
    assert oasr("transcribe", data, "--allow-pipes").code == 0 and marker.exists()


@pytest.mark.parametrize("flags", [(), ("--allow-pipes",)])
def test_a_path_is_never_a_command(oasr, engines, manifest, tmp_path, flags) -> None:
    marker = tmp_path / "marker"
    made = f"touch {marker}"
    names = [f"{made} |", f"$({made})", f"`{made}`", f"; {made}", f"|{made}"]
    rows = [json.dumps({"id": f"r{i}", "audio": name}) for i, name in enumerate(names)]
    rows.append(json.dumps({"id": "c", "audio": "raa.wav", "command": made}))
    assert oasr("transcribe", manifest(1, *rows), *flags).code == 3
    assert not marker.exists()


def everything(folder: Path) -> set[str]:
    """Every file and folder below, links not followed."""
    return {str(Path(root, name)) for root, folders, files in os.walk(folder) for name in [*folders, *files]}


def file_formats() -> list[str]:
    """The formats that write a file for each row."""
    return [name for name in WRITERS.names() if build_writers([name])[name].scope == "utterance"]


@pytest.mark.parametrize("name", file_formats())
def test_no_id_leads_out_of_the_folder(oasr, engines, manifest, tmp_path, read_rows, name) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious"
    listed = manifest(1, *(json.dumps({"id": i, "audio": "raa.wav"}) for i in HOSTILE))
    precious.write_text("mine")
    before = everything(tmp_path)
    assert oasr("transcribe", manifest(1, name="first.jsonl"), "-o", out).code == 0
    suffix = build_writers([name])[name].suffix
    (out / f"link{suffix}").symlink_to(precious)
    (out / f"dangling{suffix}").symlink_to(tmp_path / "up")
    done = oasr("transcribe", listed, "-o", out, "-f", name, "--overwrite")
    assert done.code == 0, done.err
    assert [row["id"] for row in read_rows(out)] == ["raa", *HOSTILE]
    outside = {path for path in everything(tmp_path) - before if not path.startswith(str(out))}
    assert outside == {str(tmp_path / "first.jsonl")}
    assert precious.read_text() == "mine" and not list(Path("/etc").glob("oasr-up*"))
    made = [path for path in out.glob(f"*{suffix}") if not path.is_symlink()]
    assert len(made) >= len(HOSTILE) + 1 and all(path.parent == out for path in made)
    for path in made:
        stem = path.name.removesuffix(suffix)
        assert len(path.name.encode()) <= 143 and stem.isprintable() and stem == stem.rstrip(". ")
        assert stem.split(".")[0].lower() not in {"con", "nul", "aux", "prn", "lpt1", "com1"}


@pytest.mark.parametrize("name", ["results.jsonl", RECORD_NAME])
def test_a_link_in_the_folder_is_not_written_through(oasr, engines, manifest, tmp_path, name) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious.jsonl"
    assert oasr("transcribe", manifest(1), "-o", out, "-f", "txt").code == 0
    (out / name).replace(precious)
    (out / name).symlink_to(precious)
    before = precious.read_bytes()
    for flag in ("--overwrite", "--resume"):
        done = oasr("transcribe", manifest(1), "-o", out, "-f", "txt", flag)
        assert done.code == 2 and f"{name}: expected a file of oasr's own, found a link" in done.err
    assert precious.read_bytes() == before


def test_a_link_under_the_name_of_a_temporary_file_is_not_written_through(tmp_path) -> None:
    from oasr.output.results_file import TEMPORARY_PREFIX, atomic_file

    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / f"{TEMPORARY_PREFIX}{os.getpid()}").symlink_to(precious)
    with atomic_file(tmp_path / "x.txt") as target:
        target.write(b"text")
    assert precious.read_text() == "mine" and (tmp_path / "x.txt").read_text() == "text"
    assert not (tmp_path / "x.txt").is_symlink()
