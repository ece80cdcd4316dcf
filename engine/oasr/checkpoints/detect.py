"""Which format a folder or file is of."""

from __future__ import annotations

from pathlib import Path

from oasr.checkpoints.contents import CheckpointFormat
from oasr.errors import CheckpointError
from oasr.registry import Registry

FORMATS: Registry[type[CheckpointFormat]] = Registry(
    "checkpoint format",
    "oasr.checkpoints",
    {
        "ctranslate2": "oasr.checkpoints.ctranslate2:CTranslate2Format",
        "huggingface": "oasr.checkpoints.hf:HuggingFaceFormat",
        "icefall": "oasr.checkpoints.icefall:IcefallFormat",
        "openai": "oasr.checkpoints.openai:OpenAIFormat",
        "wenet": "oasr.checkpoints.wenet:WenetFormat",
    },
)


def detect(path: Path) -> str:
    """Name of the format of `path`: the one that is surest of it.

    Raises:
        CheckpointError: no format claims it (what each looks for, and what is there), or two
            claim it equally.
    """
    sure = {name: format_cls().specificity(path) for name, format_cls in FORMATS.items()}
    best = max(sure.values(), default=0)
    claims = [name for name, value in sure.items() if value == best]
    if best == 0:
        wanted = "; ".join(f"{name}: {format_cls().looks_for}" for name, format_cls in FORMATS.items())
        raise CheckpointError(
            f"{path}: no known checkpoint format. Looked for {wanted}. Found {_listing(path)}"
        )
    if len(claims) > 1:
        raise CheckpointError(
            f"{path}: holds checkpoints of several formats ({', '.join(claims)}); "
            "name the weight file itself, or keep one format in the folder"
        )
    return claims[0]


def _listing(path: Path) -> str:
    if path.is_file():
        return f"one file of {path.stat().st_size} bytes"
    names = sorted(p.name + ("/" if p.is_dir() else "") for p in path.iterdir())
    shown = ", ".join(names[:12]) or "an empty folder"
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown
