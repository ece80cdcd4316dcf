"""Checkpoints: finding, checking and reading them, whatever their format."""

from oasr.checkpoints.contents import CheckpointContents, CheckpointFormat, ResolvedCheckpoint
from oasr.checkpoints.detect import FORMATS
from oasr.checkpoints.load import LoadReport, load_model
from oasr.checkpoints.resolve import resolve

__all__ = [
    "FORMATS",
    "CheckpointContents",
    "CheckpointFormat",
    "LoadReport",
    "ResolvedCheckpoint",
    "load_model",
    "resolve",
]
