"""`oasr families`: every decode family and every option of it, read from the declarations."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from oasr_cli import arguments as flag
from oasr_cli import console

if TYPE_CHECKING:
    from oasr.decode.strategy import DecodeStrategy


def families(json: flag.AsJson = False) -> None:
    """List the decode families and their options.

    The options are what `oasr transcribe --decode-option KEY=VALUE` sets.
    """
    from oasr.decode.strategy import FAMILIES

    described = [describe_family(name, cls) for name, cls in FAMILIES.items()]
    if json:
        console.result_json(described)
        return
    for number, family in enumerate(described):
        if number:
            console.result("")
        _print(family)


def describe_family(name: str, cls: type[DecodeStrategy]) -> dict[str, Any]:
    """What `cls` declares. Word timing modes that depend on options or checkpoint are None."""
    from oasr.decode.options import describe

    # Static: a property asks a loaded model. Where it is still that of the base, there are no modes.
    modes = inspect.getattr_static(cls, "word_timing_modes")
    base = inspect.getattr_static(_base(), "word_timing_modes")
    static = () if modes is base else modes
    return {
        "name": name,
        "about": (inspect.getdoc(cls) or "").partition("\n")[0],
        "capability": cls.capability,
        "consumes": cls.consumes,
        "incremental": cls.incremental,
        "honours": list(cls.selective_options),
        "word_timing_modes": None if isinstance(static, property) else list(static),
        "options": [asdict(spec) for spec in describe(cls.options_cls)],
    }


def _base() -> type[DecodeStrategy]:
    from oasr.decode.strategy import DecodeStrategy

    return DecodeStrategy


def _print(family: dict[str, Any]) -> None:
    modes = family["word_timing_modes"]
    words = "depend on options and checkpoint" if modes is None else ", ".join(modes) or "none"
    facts = (
        f"needs {family['capability']}",
        f"consumes {family['consumes'].replace('both', 'hidden and log_probs')}",
        "incremental" if family["incremental"] else "one-shot",
        f"honours {', '.join(family['honours']) or 'no selective option'}",
        f"word times: {words}",
    )
    console.styled_result((family["name"], "bold"), f"  {family['about']}")
    console.result(f"  {' · '.join(facts)}")
    if not family["options"]:
        console.result("  no options")
        return
    rows = [(o["name"], _type(o), _spelled(o["default"]), _doc(o)) for o in family["options"]]
    console.result_table(("option", "type", "default", "what it does"), rows)


def _type(option: dict[str, Any]) -> str:
    return " | ".join(option["choices"]) or option["type"]


def _doc(option: dict[str, Any]) -> str:
    return option["doc"] + (f" (also set by the old name {option['legacy']})" if option["legacy"] else "")


def _spelled(value: Any) -> str:
    """A default as `--decode-option` takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)
