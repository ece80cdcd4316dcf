"""How this copy of oasr is installed again, for messages that say what to do."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

_CHECKOUT = "."


def pip_install(extra: str = "", *flags: str) -> str:
    """The pip command that installs what runs here once more, with an optional extra.

    It names the folder, wheel or repository that this copy came from, as pip has noted it (PEP 610), and not
    just `oasr`: a package index may have another project under that name.

    Args:
        extra: name of the extra, such as "vad"; "" = none.
        flags: of pip, such as "--force-reinstall".
    """
    try:
        origin = _origin(distribution("oasr"), f"[{extra}]" if extra else "")
    except PackageNotFoundError:  # run from its sources, without having been installed
        origin = _nearby(f"[{extra}]" if extra else "")
    return " ".join(["pip install", *flags, origin])


def _origin(found: Distribution, extra: str) -> str:
    noted = found.read_text("direct_url.json")
    if noted is None:  # it came from an index: the version tells it from others of that name
        return shlex.quote(f"oasr{extra}=={found.version}")
    try:
        where: dict[str, Any] = json.loads(noted)
        url = urlsplit(where["url"])
        vcs = where.get("vcs_info")
        if vcs:
            return shlex.quote(f"oasr{extra} @ {vcs['vcs']}+{where['url']}@{vcs['commit_id']}")
        if url.scheme != "file":
            return shlex.quote(f"oasr{extra} @ {where['url']}")
        path = Path(url2pathname(url.path))
        editable = where.get("dir_info", {}).get("editable", False)
    except (ValueError, KeyError, TypeError, AttributeError):
        return _nearby(extra)
    if not path.exists():
        return _nearby(extra)
    return ("-e " if editable else "") + shlex.quote(f"{path}{extra}")


def _nearby(extra: str) -> str:
    """For a copy whose origin is gone."""
    return f"{shlex.quote(_CHECKOUT + extra)} (in a checkout of oasr)"
