"""Snapshots of the Hugging Face hub: from its local cache first, over the network when there is one."""

from __future__ import annotations

import hashlib
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from oasr.checkpoints.cache import known_sha256
from oasr.errors import CheckpointError

_CONNECT_S = 3.0
_DIGEST = re.compile("[0-9a-f]{64}|[0-9a-f]{40}")
_SMALL = (
    "config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt",
    "added_tokens.json", "vocabulary.*", "tokens.txt", "data/tokens.txt", "data/lang_*/tokens.txt",
    "data/lang_*/bpe.model", "exp/icefall.yaml",
)  # fmt: skip
_WEIGHTS = (  # the first kind that a repository has is fetched, the others are not
    ("model.bin",),
    ("model.safetensors.index.json", "model-*.safetensors"),
    ("model.safetensors",),
    ("pytorch_model.bin.index.json", "pytorch_model-*.bin"),
    ("pytorch_model.bin",),
    ("exp/pretrained.pt",),
)


def fetch(repo: str, revision: str | None = None) -> Path:
    """Folder of a snapshot of `repo`, downloaded when the local cache lacks it.

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
    """Folder of a snapshot that is on this machine with its weights, or None."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repo, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError):
        # Not there, or a cache that cannot be read: the same to whoever asks.
        return None
    # A download that was broken off leaves a snapshot without weights.
    complete = any((folder / kind[0]).is_file() for kind in _WEIGHTS)
    return folder if complete else None


def download(repo: str, revision: str | None = None) -> Path:
    """Fetch configuration, tokenizer and one kind of weights of `repo`."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    where = f"{repo}@{revision}" if revision else repo
    _require_hub(where)
    try:
        names = HfApi().list_repo_files(repo, revision=revision)
        weights = next((kind for kind in _WEIGHTS if kind[0] in names), ())
        return Path(snapshot_download(repo, revision=revision, allow_patterns=[*_SMALL, *weights]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{where}: the hub did not deliver it ({reason})") from error


def _require_hub(where: str) -> None:
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
        raise CheckpointError(
            f"{where}: not on this machine, and the hub {host} cannot be reached ({reason})"
        )


def _proxied(scheme: str) -> bool:
    from urllib.request import getproxies

    return scheme in getproxies()
