"""Snapshots of the Hugging Face hub: from its local cache first, over the network when there is one."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from oasr.checkpoints.cache import known_sha256
from oasr.checkpoints.files import read_json
from oasr.errors import CheckpointError

logger = logging.getLogger(__name__)

_CONNECT_S = 3.0
_DIGEST = re.compile("[0-9a-f]{64}|[0-9a-f]{40}")
_SMALL = (
    "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt",
    "added_tokens.json", "vocabulary.*", "tokens.txt", "data/tokens.txt", "data/lang_*/tokens.txt",
    "data/lang_*/bpe.model", "exp/icefall.yaml",
)  # fmt: skip
_WEIGHTS = (  # the first kind that a repository has is fetched, the others are not; readers take the same one
    ("model.bin",),
    ("model.safetensors",),
    ("model.safetensors.index.json", "model-*.safetensors"),
    ("pytorch_model.bin",),
    ("pytorch_model.bin.index.json", "pytorch_model-*.bin"),
    ("exp/pretrained.pt",),
)


def fetch(repo: str, revision: str | None = None) -> Path:
    """Folder of a snapshot of `repo`, downloaded as far as the local cache lacks it.

    Raises:
        CheckpointError: the hub cannot be reached, or has no such repository or revision.
    """
    found = cached(repo, revision) or download(repo, revision)
    check_blobs(found)
    return found


def check_blobs(folder: Path) -> None:
    """Compare the files of a snapshot with the digests that the hub gave with them.

    The cache of huggingface_hub names each file's content by its etag: the sha256 of a large file, git's sha1
    of a small one. What was cut off or changed since no longer has the name under which it lies.

    Raises:
        CheckpointError: names the file, both digests and what to do.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        # The first link alone: one that leads on from the blob must not say what the blob is.
        blob = path.parent / path.readlink() if path.is_symlink() else path
        if blob.parent.name != "blobs" or not _DIGEST.fullmatch(blob.name):
            continue  # a file system without links: there is no name to compare with
        found = known_sha256(blob) if len(blob.name) == 64 else _git_sha1(blob)
        if found != blob.name:
            raise CheckpointError(
                f"{path}: expected the digest {blob.name} that the hub gave with it, found {found}; delete "
                f"{blob.resolve()} and fetch it again"
            )


def _git_sha1(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def cached(repo: str, revision: str | None = None) -> Path | None:
    """Folder of a snapshot that is on this machine with all that reading it takes, or None."""
    folder, listed = _found(repo, revision)
    return folder if folder is not None and listed and _usable(folder) else None


def present(repo: str, revision: str | None = None) -> Path | None:
    """As `cached`, also where small files of the repository are absent that not every checkpoint has.

    `fetch` would look for those first, and does without them when the hub cannot be reached.
    """
    folder, _ = _found(repo, revision)
    return folder if folder is not None and _usable(folder) else None


def _usable(folder: Path) -> bool:
    return _has_weights(folder) and _has_rest(folder)


def download(repo: str, revision: str | None = None) -> Path:
    """Fetch what is absent of the configuration, the tokenizer and one kind of weights of `repo`.

    A snapshot that is here with its weights keeps them, and is used as it is when the hub gives nothing.

    Raises:
        CheckpointError: the hub cannot be reached, or has no such repository or revision.
    """
    where = f"{repo}@{revision}" if revision else repo
    folder, _ = _found(repo, revision)
    if folder is None or not _has_weights(folder):
        _require_hub(f"{where}: {'not' if folder is None else 'not all of it is'} on this machine")
        return _fetched(where, repo, revision)
    try:
        _require_hub(f"{where}: not all files beside the weights are on this machine")
        # By its commit: a branch that moved on since would bring other weights.
        return _fetched(where, repo, folder.name, weights=False)
    except CheckpointError as error:
        logger.warning("%s; what is here is used", error)
        return folder


def _found(repo: str, revision: str | None) -> tuple[Path | None, bool]:
    """Folder of the snapshot in the local cache, and whether it has every small file that the hub listed."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        # Without the patterns, newer versions miss the files of a repository that nobody asked for.
        found = snapshot_download(repo, revision=revision, allow_patterns=[*_SMALL], local_files_only=True)
        return Path(found), True
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        # Not there, or a cache that cannot be read: the same to whoever asks.
        partial = getattr(error, "snapshot_path", None)
        return None if partial is None else Path(partial), False


def _has_weights(folder: Path) -> bool:
    """Whether the weights that a reader would take are here, and not the index alone of some."""
    first = next((folder / kind[0] for kind in _WEIGHTS if (folder / kind[0]).is_file()), None)
    if first is None or not first.name.endswith(".index.json"):
        return first is not None
    try:
        named = read_json(first).get("weight_map")
    except CheckpointError:
        return True  # a damaged file, not an absent one: its digest or its reader will say so
    shards = named.values() if isinstance(named, dict) else ()
    # Not Path.is_file, which raises for a name that is too long.
    return all(os.path.isfile(folder / str(name)) for name in shards)  # noqa: PTH113


def _has_rest(folder: Path) -> bool:
    """Whether what no reader can do without lies beside the weights.

    Who loads a network alone, with AutoModel, leaves a snapshot without it.
    """
    from oasr.checkpoints.icefall_tokens import symbol_folders

    if (folder / "exp/pretrained.pt").is_file():
        return bool(symbol_folders(folder))
    needed: list[tuple[str, ...]] = [("tokenizer.json", "vocab.json")]
    if not (folder / "model.bin").is_file():
        needed.append(("config.json",))
        # Whisper's features follow from its sizes.
        if _is_ctc(folder / "config.json"):
            needed.append(("preprocessor_config.json", "processor_config.json"))
    return all(any((folder / name).is_file() for name in names) for names in needed)


def _is_ctc(config: Path) -> bool:
    try:
        classes = read_json(config, required=False).get("architectures")
    except CheckpointError:
        return False
    return isinstance(classes, list) and any(str(name).endswith("ForCTC") for name in classes)


def _fetched(where: str, repo: str, revision: str | None, weights: bool = True) -> Path:
    from huggingface_hub import HfApi, snapshot_download

    try:
        names = HfApi().list_repo_files(repo, revision=revision) if weights else []
        kind = next((kind for kind in _WEIGHTS if kind[0] in names), ())
        return Path(snapshot_download(repo, revision=revision, allow_patterns=[*_SMALL, *kind]))
    except Exception as error:
        # What its HTTP client raises comes through, from another library in each of its major versions.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{where}: the hub did not deliver it ({reason})") from error


def _require_hub(lack: str) -> None:
    """Fail within seconds, not after a client's retries, when there is no hub to talk to."""
    from huggingface_hub import constants

    target = urlsplit(constants.ENDPOINT)
    host = target.hostname or "huggingface.co"
    reason = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else None
    # Behind a proxy a direct connection would say nothing.
    if reason is None and not _proxied(target.scheme):
        try:
            port = target.port or (443 if target.scheme == "https" else 80)
            socket.create_connection((host, port), timeout=_CONNECT_S).close()
        except OSError as error:
            reason = str(error)
    if reason is not None:
        raise CheckpointError(f"{lack}, and the hub {host} cannot be reached ({reason})")


def _proxied(scheme: str) -> bool:
    from urllib.request import getproxies

    return scheme in getproxies()
