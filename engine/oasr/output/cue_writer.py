"""What the formats that are made of cues have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from oasr.output.cue_rules import WriterSettings
from oasr.types import RequestOutput


class CueWriter(ABC):
    """A format of one file an utterance, made of cues; derived classes add `suffix` and `render`."""

    scope: Literal["utterance"] = "utterance"
    suffix: str
    word_times: Literal["wanted"] = "wanted"

    def __init__(self, settings: WriterSettings | None = None) -> None:
        """Without `settings`, the defaults hold."""
        self.settings = settings or WriterSettings()

    @classmethod
    def configured(cls, settings: WriterSettings) -> CueWriter:
        """The writer for a run with `settings`."""
        return cls(settings)

    @abstractmethod
    def render(self, row: Mapping[str, Any], output: RequestOutput | None) -> str:
        """See Writer."""
