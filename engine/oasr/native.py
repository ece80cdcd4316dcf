"""The one door to the compiled extension `oasr._C` (sources in csrc/)."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from oasr.errors import OasrError


@cache
def extension() -> ModuleType:
    """The compiled module.

    Raises:
        OasrError: it has not been built for this Python; the message names the command that does.
    """
    try:
        from oasr import _C
    except ImportError as error:
        raise OasrError(
            f"the compiled part of oasr is missing or does not load ({error}); "
            "build it with `pip install -e .` in the checkout, or reinstall the wheel for this Python"
        ) from error
    return _C  # type: ignore[return-value]
