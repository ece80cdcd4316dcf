"""A family's options: declared once as a frozen dataclass, typed by annotation, spelled by strings."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from oasr.errors import OptionsError

OptionsT = TypeVar("OptionsT")
_TRUE, _FALSE, _NONE = ("1", "true", "yes", "on"), ("0", "false", "no", "off"), ("none", "null")


def option(default: Any, *, doc: str, legacy: str | None = None, choices: tuple[str, ...] = ()) -> Any:
    """Declare one field of an options dataclass.

    Args:
        default: the value when nobody sets it.
        doc: one sentence for `oasr families`.
        legacy: deprecated flat name that still sets this field (`EngineConfig.legacy_options`).
        choices: the only strings allowed, when the field is a choice.
    """
    return field(default=default, metadata={"doc": doc, "legacy": legacy, "choices": choices})


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """What `oasr families` shows of one option."""

    name: str
    type: str
    default: Any
    doc: str
    legacy: str | None
    choices: tuple[str, ...]


def describe(options_cls: type) -> list[OptionSpec]:
    """Every option of `options_cls` in declaration order."""
    hints = get_type_hints(options_cls)
    return [
        OptionSpec(
            f.name,
            type_name(hints[f.name]),
            f.default if f.default is not MISSING else None,
            f.metadata.get("doc", ""),
            f.metadata.get("legacy"),
            f.metadata.get("choices", ()),
        )
        for f in fields(options_cls)
    ]


def resolve(options_cls: type[OptionsT], legacy: Mapping[str, Any], given: Mapping[str, Any]) -> OptionsT:
    """Build `options_cls`: defaults, then deprecated flat fields, then `given`.

    `given` may name an option by its deprecated flat name too, which is what a command line has of it.

    Raises:
        OptionsError: an unknown key (the message lists the valid ones), an option given under both of its
            names, or a value that the field's annotation cannot take.
    """
    known: dict[str, Field[Any]] = {f.name: f for f in fields(options_cls)}  # type: ignore[arg-type]
    given = _by_own_name(given, {f.metadata.get("legacy"): name for name, f in known.items()})
    unknown = sorted(set(given) - set(known))
    if unknown:
        valid = ", ".join(known) or "none (this family has no options)"
        raise OptionsError(f"unknown decode option {', '.join(map(repr, unknown))}; valid: {valid}")
    hints = get_type_hints(options_cls)
    values: dict[str, Any] = {}
    for name, spec in known.items():
        flat = spec.metadata.get("legacy")
        if flat is not None and flat in legacy:
            values[name] = coerce(flat, hints[name], legacy[flat], spec.metadata.get("choices", ()))
        if name in given:
            values[name] = coerce(name, hints[name], given[name], spec.metadata.get("choices", ()))
    return options_cls(**values)


def _by_own_name(given: Mapping[str, Any], own: Mapping[str | None, str]) -> dict[str, Any]:
    """`given` with flat names replaced by what `own` says they stand for."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = own.get(key, key)
        if name in found:
            both = next(flat for flat in own if own[flat] == name)
            raise OptionsError(f"{name} and {both} are two names of one option: give one of them")
        found[name] = value
    return found


def coerce(name: str, annotation: Any, value: Any, choices: tuple[str, ...] = ()) -> Any:
    """`value` as `annotation` says; strings are parsed, other values are checked."""
    arms, optional = _arms(annotation)
    if value is None or (isinstance(value, str) and optional and value.lower() in _NONE):
        if optional:
            return None
        raise OptionsError(f"{name}: expected {type_name(annotation)}, got nothing")
    if choices and value not in choices:
        raise OptionsError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
    if isinstance(value, str) and not any(_spellable(arm) for arm in arms):
        raise OptionsError(f"{name}: a {type_name(annotation)} cannot be written as text; set it from Python")
    for arm in arms:
        found, result = _convert(arm, value)
        if found:
            return result
    raise OptionsError(f"{name}: expected {type_name(annotation)}, got {value!r}")


def type_name(annotation: Any) -> str:
    """A short readable name: `int`, `int or none`, `on/off`."""
    arms, optional = _arms(annotation)
    words = ["on/off" if arm is bool else getattr(arm, "__name__", str(arm)) for arm in arms]
    return " or ".join(words + (["none"] if optional else []))


def _arms(annotation: Any) -> tuple[list[Any], bool]:
    if get_origin(annotation) in (typing.Union, types.UnionType):
        args = get_args(annotation)
        return [a for a in args if a is not type(None)], type(None) in args
    return [annotation], False


def _spellable(arm: Any) -> bool:
    return arm in (bool, int, float, str) or (isinstance(arm, type) and issubclass(arm, Enum))


def _convert(arm: Any, value: Any) -> tuple[bool, Any]:
    """(True, converted) when `value` can be read as `arm`, else (False, None)."""
    if arm is bool:
        text = str(value).lower() if isinstance(value, (str, bool, int)) else ""
        return (text in _TRUE or text in _FALSE), text in _TRUE
    if arm in (int, float):
        # True is an int to Python, and no number to a user.
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return False, None
        try:
            number = arm(value)
        except (ValueError, OverflowError):
            return False, None
        # 2.5 is no integer, and NaN, which differs from itself, is no number.
        exact = isinstance(value, str) or number == value
        return (exact and number == number), number
    if arm is str:
        return isinstance(value, str), value
    if isinstance(arm, type) and issubclass(arm, Enum):
        match = [m for m in arm if value in (m, m.name, m.value)]
        return bool(match), match[0] if match else None
    return isinstance(arm, type) and isinstance(value, arm), value
