"""Where an entry's model and manifest are on this machine, if they are, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oasr.checkpoints import catalog, hub
from oasr.checkpoints.cache import weights_sha256
from oasr.checkpoints.resolve import resolve
from oasr.errors import CheckpointError
from oasr.gate.schema import Entry
from oasr.manifest import open_inputs


@dataclass(frozen=True, slots=True)
class Roots:
    """Folders that relative paths start at, in order.

    Attributes:
        file: the folder of the file of pinned rates.
        assets: the folder of what is too large for the repository; None = there is none.
    """

    file: Path
    assets: Path | None = None

    def find(self, path: str) -> Path | None:
        """`path` under the first root where it exists."""
        folders = [self.file, *([self.assets] if self.assets else [])]
        return next((folder / path for folder in folders if (folder / path).exists()), None)


@dataclass(frozen=True, slots=True)
class Assets:
    """What an entry needs, found.

    Attributes:
        model: what EngineConfig is given.
        model_sha256, manifest_sha256: what they hold now.
    """

    model: str
    model_sha256: str
    manifest: Path
    manifest_sha256: str


def absent(entry: Entry, roots: Roots) -> list[str]:
    """What the entry needs and this machine lacks, in words; nothing is fetched."""
    lacking = []
    if _model(entry.model, roots) is None:
        lacking.append(f"model {entry.model}")
    if roots.find(entry.manifest) is None:
        lacking.append(f"manifest {entry.manifest}")
    if entry.device == "cuda" and not _has_gpu():
        lacking.append("an NVIDIA GPU")
    return lacking


def locate(entry: Entry, roots: Roots) -> Assets:
    """The assets of an entry that lacks none.

    Raises:
        CheckpointError: the model's files are not what they should be.
        ManifestError: the list cannot be read.
    """
    model, manifest = _model(entry.model, roots), roots.find(entry.manifest)
    if model is None or manifest is None:
        raise CheckpointError(f"{entry.key}: lacks {', '.join(absent(entry, roots))}")
    weights = resolve(model).files.get("weights")
    if weights is None:
        raise CheckpointError(f"{entry.key}: model {model}: its format names no weights file to be pinned")
    digest = open_inputs([str(manifest)]).sha256()
    return Assets(model, weights_sha256(weights), manifest, digest)


def _model(name: str, roots: Roots) -> str | None:
    """What EngineConfig takes for `name` when the model is on this machine, else None."""
    # The order in which a checkpoint is resolved, so that both mean the same model.
    if catalog.find(name) is not None:
        return name if catalog.installed(name) else None
    path = roots.find(name)
    if path is not None:
        return str(path)
    # The hub's cache and never the hub: a check must not pull gigabytes, nor depend on the network.
    repo, _, revision = name.partition("@")
    cached = hub.present(repo, revision or None) if repo.count("/") == 1 else None
    return None if cached is None else name


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()
