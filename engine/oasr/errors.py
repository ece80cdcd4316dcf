"""Every error that oasr raises on purpose.

    OasrError
    ├── OptionsError          a flag, option or config value cannot be used
    │   └── CapabilityError   the checkpoint lacks what the chosen decode family needs
    ├── ManifestError         the list of recordings cannot be used as a whole
    ├── RowError              one row failed; the run goes on (`stage` says where)
    │   ├── ManifestRowError  stage "manifest": the row itself is malformed
    │   ├── AudioError        stage "audio": the recording cannot be read
    │   ├── RequestError      stage "admission": an option this row asks for cannot be honoured
    │   └── DecodeError       stage "decode": the engine failed on this row
    ├── CheckpointError       a model cannot be found, verified or loaded
    ├── LaunchError           engines cannot be started on a cluster, or were lost there
    └── OutputError           results cannot be written

A message says where, what was expected, what was found and what to do about it.
"""

from __future__ import annotations

_LONGEST = 4000
"""Characters of a message. Nobody reads more, and a file that shows what it holds may hold anything."""


class OasrError(Exception):
    """Base of all oasr errors: one readable message, no traceback needed."""

    def __init__(self, message: str = "") -> None:
        """`message` is kept whole up to a few thousand characters; of a longer one, its two ends."""
        half = _LONGEST // 2
        left_out = len(message) - 2 * half
        super().__init__(
            message if left_out <= 0 else f"{message[:half]} … ({left_out} characters) … {message[-half:]}"
        )


class OptionsError(OasrError):
    """A flag, option or configuration value is unknown, malformed or in conflict."""


class CapabilityError(OptionsError):
    """The model does not offer the members that a decode family drives."""


class ManifestError(OasrError):
    """The input list is unusable as a whole (absent, empty, duplicate ids)."""


class RowError(OasrError):
    """One row failed. `stage` is written into the row's `error` record."""

    stage = "row"


class ManifestRowError(RowError):
    """A manifest row is malformed."""

    stage = "manifest"


class AudioError(RowError):
    """A recording cannot be opened or decoded, or holds no usable samples."""

    stage = "audio"


class RequestError(RowError):
    """A row asks for something that the active family or checkpoint cannot do."""

    stage = "admission"


class DecodeError(RowError):
    """The engine failed on one row (for example out of memory at batch size 1)."""

    stage = "decode"


class CheckpointError(OasrError):
    """A model cannot be located, verified, converted or loaded."""


class LaunchError(OasrError):
    """Engines cannot be started on a cluster, or not be kept alive there."""


class OutputError(OasrError):
    """Results cannot be written where they were asked for."""
