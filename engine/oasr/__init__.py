"""oasr: batch transcription. Importing it loads neither torch nor the extension."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oasr.config import EngineConfig
from oasr.errors import OasrError
from oasr.types import DecodingOptions, Hypothesis, Request, RequestOutput, RowFailure, Utterance, WordTiming

__version__ = "0.1.0"
__all__ = [
    "DecodeStrategy",
    "DecodingOptions",
    "Engine",
    "EngineConfig",
    "Hypothesis",
    "OasrError",
    "Request",
    "RequestOutput",
    "RowFailure",
    "Utterance",
    "WordTiming",
    "option",
    "register_decode_strategy",
]

_LAZY = {
    "DecodeStrategy": "oasr.decode.strategy",
    "Engine": "oasr.engine",
    "option": "oasr.decode.options",
    "register_decode_strategy": "oasr.decode.strategy",
}


def __getattr__(name: str) -> Any:
    """Import the names that need torch when they are first asked for (PEP 562)."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'oasr' has no attribute {name!r}")
