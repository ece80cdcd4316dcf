"""What several tests of the readers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def any_rate() -> Iterator[None]:
    """Takes recordings of so few samples a second that hours of them are quick to read."""
    patch = pytest.MonkeyPatch()
    patch.setattr("oasr.audio.decode._LOWEST_RATE", 1)
    yield
    patch.undo()
