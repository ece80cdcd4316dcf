"""Architectures: encoders, decoders and what they offer to the decode families.

`ARCHITECTURES` names them all; installed packages add theirs through the `oasr.models` entry points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oasr.registry import Registry

if TYPE_CHECKING:
    from oasr.models.interfaces import AsrModel

ARCHITECTURES: Registry[type[AsrModel]] = Registry(
    "architecture",
    "oasr.models",
    {
        "conformer": "oasr.models.conformer:ConformerModel",
        "hf_ctc": "oasr.models.hf_ctc:HfCtcModel",
        "whisper": "oasr.models.whisper:WhisperModel",
        "zipformer": "oasr.models.zipformer:ZipformerModel",
    },
)
