"""What a report or a run's record says of the model that was loaded."""

from __future__ import annotations

from typing import Any

from oasr.checkpoints.cache import weights_sha256


def loaded_facts(name: object, model: Any) -> dict[str, Any]:
    """Name (as it was asked for), architecture, format and weights (sha256) of a loaded AsrModel."""
    checkpoint = getattr(model, "checkpoint", None)
    weights = None if checkpoint is None else checkpoint.files.get("weights")
    return {
        "name": str(name),
        "architecture": model.architecture,
        "format": None if checkpoint is None else checkpoint.format,
        "sha256": None if weights is None else weights_sha256(weights),
    }
