"""`run.json`: what made the results of a folder, and whether another run may go on with them.

One JSON object: `schema`, `state` ("running", "finished", "stopped"), `started`, `updated`, `command`, `list`
(`inputs`, `sha256`, `rows`, `shard`), `model`, `settings` (flag → value: all that decides what a row says),
`config`, `versions`, `counts`, and `changes`, what `--resume-anyway` let pass. A run that was killed leaves
the state "running".
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from oasr.errors import OutputError
from oasr.output.jsonl import encode_value
from oasr.output.results_file import atomic_file

RUN_NAME = "run.json"
SCHEMA = "oasr-run/1"
_PACKAGES = ("oasr", "torch", "transformers", "tokenizers", "numpy", "soundfile", "av")
_SHOWN = 60


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Replace `path` by `record` in one step, on the disk before the old one goes.

    Raises:
        OSError: it cannot be written; the old one is left as it is.
    """
    plain = json.loads(encode_value(record))  # without what JSON cannot carry
    # Half characters were escapes in between, and are themselves again: hence `backslashreplace` below.
    text = json.dumps(plain, ensure_ascii=False, indent=1) + "\n"
    with atomic_file(path) as target:
        target.write(text.encode("utf-8", "backslashreplace"))


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of a folder; None where there is none.

    Raises:
        OutputError: the file is there and is no such record.
    """
    path = folder / RUN_NAME
    try:
        record = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot be read ({error}); move it away, or use another folder") from None
    parts = ("list", "model", "settings", "counts")
    sound = isinstance(record, dict) and all(isinstance(record.get(name), dict) for name in parts)
    if not sound or record.get("schema") != SCHEMA:
        raise OutputError(
            f"{path}: expected the record of a run ({SCHEMA}), found something else; was it written by "
            "another version of oasr, or another program? Move it away, or use another folder"
        )
    return record


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], addable: tuple[str, ...] = (), shards: bool = False
) -> list[str]:
    """One line for each thing that two records say differently: `--language: "en" then, "de" now`.

    Formats may differ: those of both are written.

    Args:
        old: a record.
        new: another; a part or a flag that one of the two lacks is passed over.
        addable: flags that may be in `new` alone, `old` having None or False for them.
        shards: the two are shards of one list, so their shards differ.
    """
    before, after = (_facts(record, shards) for record in (old, new))
    return [
        f"{flag}: {_shown(before[flag])} then, {_shown(after[flag])} now"
        for flag in after
        if flag in before
        and before[flag] != after[flag]
        and not (flag in addable and before[flag] in (None, False))
    ]


def _facts(record: Mapping[str, Any], shards: bool) -> dict[str, Any]:
    facts = {flag: value for flag, value in record.get("settings", {}).items() if flag != "--format"}
    if "list" in record:
        facts["the list (sha256)"] = record["list"].get("sha256")
        if not shards:
            facts["--shard"] = record["list"].get("shard")
    if "model" in record:
        # A model is what its weights are, whatever name or folder it was given by.
        digest = record["model"].get("sha256")
        facts["--model (sha256 of its weights)" if digest else "--model"] = digest or record["model"].get(
            "name"
        )
    return facts


def versions() -> dict[str, str]:
    """The versions of what computes a result, asked without importing any of it."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
