"""`oasr models list|show|pull|verify`: the named models, where they are and whether they are sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from oasr.errors import CheckpointError, OptionsError

from oasr_cli import arguments as flag
from oasr_cli import console
from oasr_cli.console import ExitCode
from oasr_cli.help import GroupedCommand

if TYPE_CHECKING:
    from oasr.checkpoints.catalog import FileCheck
    from oasr.checkpoints.catalog_data import CatalogEntry

app = typer.Typer(help="List, show, fetch and check the named models.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A name that `oasr models list` shows.", show_default=False)
]
SomeName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="One model; all installed ones when left out.", show_default=False),
]


@app.command("list", cls=GroupedCommand)
def list_models(json: flag.AsJson = False) -> None:
    """List every named model."""
    from oasr.checkpoints import catalog

    rows = [_facts(entry) for entry in catalog.entries()]
    if json:
        console.result_json(rows)
        return
    console.result_table(
        ("name", "here", "parameters", "size", "licence", "source"),
        [
            (
                row["name"],
                "yes" if row["installed"] else "no",
                f"{row['parameters_millions']} M",
                f"{row['bytes'] / 2**20:.0f} MiB" if row["bytes"] else "",
                row["licence"],
                f"pip extra {row['pip_extra']}" if row["pip_extra"] else row["hub"] or "",
            )
            for row in rows
        ],
    )


@app.command("show", cls=GroupedCommand)
def show(name: Name, json: flag.AsJson = False) -> None:
    """Show one model and the digests of its files."""
    from oasr.checkpoints import catalog

    facts = _facts(_entry(name))
    try:
        folder = catalog.locate(name) if facts["installed"] else None
    except CheckpointError as error:
        # It is there and is not sound: what is known of it is shown all the same.
        facts["problem"] = str(error)
        folder = None
    facts["folder"] = None if folder is None else str(folder)
    if json:
        console.result_json(facts)
        return
    for key, value in facts.items():
        if isinstance(value, dict) and value:
            console.result(f"{key}:")
            for file, digest in value.items():
                console.result(f"  {file}  {digest}")
        elif value not in (None, {}):
            console.result(f"{key}: {_plain(value)}")


@app.command("pull", cls=GroupedCommand)
def pull(name: Name, json: flag.AsJson = False) -> None:
    """Fetch and check a model; print its folder."""
    from oasr.checkpoints import catalog

    # An unknown name is an error of usage, found before anything is fetched.
    _entry(name)
    with console.busy(f"fetching {name}"):
        folder = catalog.pull(name)
    if json:
        console.result_json({"name": name, "folder": str(folder)})
    else:
        console.result(str(folder))


@app.command("verify", cls=GroupedCommand)
def verify(name: SomeName = None, json: flag.AsJson = False) -> None:
    """Check the files of installed models again.

    Exit code 1 when one is not what the catalog says.
    """
    from oasr.checkpoints import catalog

    names = [_entry(name).name] if name else [e.name for e in catalog.entries() if catalog.installed(e.name)]
    if not names:
        raise CheckpointError("no named model is installed; see `oasr models list` and `oasr models pull`")
    checks = {}
    for one in names:
        with console.busy(f"hashing {one}"):
            checks[one] = catalog.verify(one)
    if json:
        console.result_json({one: [_check(check) for check in found] for one, found in checks.items()})
    else:
        for one, found in checks.items():
            for check in found:
                console.result(_check_line(one, check))
    if not all(check.ok for found in checks.values() for check in found):
        raise typer.Exit(ExitCode.BROKEN)


def _entry(name: str) -> CatalogEntry:
    from oasr.checkpoints import catalog

    entry = catalog.find(name)
    if entry is None:
        known = ", ".join(entry.name for entry in catalog.entries())
        raise OptionsError(f"no model is called {name!r}; known: {known}")
    return entry


def _facts(entry: CatalogEntry) -> dict[str, Any]:
    from oasr.checkpoints import catalog

    hub = entry.hub
    return {
        "name": entry.name,
        "title": entry.title,
        "installed": catalog.installed(entry.name),
        "architecture": entry.architecture,
        "languages": entry.languages,
        "parameters_millions": entry.parameters,
        "bytes": sum(file.size for file in entry.files.values()) or None,
        "licence": entry.licence,
        "pip_extra": entry.extra or None,
        "packages": sorted({f"{piece.distribution}=={piece.version}" for piece in entry.pieces}),
        "hub": None if hub is None else hub.repo,
        "hub_revision": None if hub is None else hub.revision,
        "sha256": {file: wanted.sha256 for file, wanted in entry.files.items()}
        or (dict(hub.sha256) if hub is not None else {}),
    }


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _check(check: FileCheck) -> dict[str, Any]:
    return {"file": str(check.file), "ok": check.ok, "expected": check.expected, "found": check.found}


def _check_line(name: str, check: FileCheck) -> str:
    if check.ok:
        known = "" if check.expected else " (the catalog knows no digest of it)"
        return f"{name}: {check.file}: ok{known}"
    found = f"found sha256 {check.found}" if check.found else "there is no such file"
    return f"{name}: {check.file}: WRONG: expected sha256 {check.expected or 'any'}, {found}"
