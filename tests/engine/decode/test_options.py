import enum
from dataclasses import dataclass
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oasr.decode.options import describe, option, resolve
from oasr.errors import OptionsError


class Mode(enum.Enum):
    FAST = "fast"
    GOOD = "good"


@dataclass
class Sub:
    depth: int = 1


@dataclass(frozen=True)
class Options:
    beam: int = option(4, legacy="old_beam", doc="Beam width.")
    nbest: Optional[int] = option(None, doc="How many.")  # noqa: UP045 - the older spelling must work too
    weight: float | None = option(0.5, legacy="old_weight", doc="Weight.")
    fast: bool = option(True, doc="Fast.")
    name: str = option("x", doc="Name.", choices=("x", "y"))
    mode: Mode = option(Mode.GOOD, doc="Mode.")
    sub: Sub | None = option(None, doc="Sub.")


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"nbest": "4"}, "nbest", 4),
        ({"nbest": "none"}, "nbest", None),
        ({"nbest": "NULL"}, "nbest", None),
        ({"nbest": None}, "nbest", None),
        ({"weight": "none"}, "weight", None),
        ({"weight": "1e-2"}, "weight", 0.01),
        ({"weight": 1}, "weight", 1.0),
        ({"beam": 8}, "beam", 8),
        ({"fast": "off"}, "fast", False),
        ({"fast": "1"}, "fast", True),
        ({"fast": 0}, "fast", False),
        ({"name": "y"}, "name", "y"),
        ({"mode": "fast"}, "mode", Mode.FAST),
        ({"mode": Mode.FAST}, "mode", Mode.FAST),
        ({"sub": Sub(3)}, "sub", Sub(3)),
    ],
)
def test_the_annotation_decides_the_type(given, field, value):
    got = getattr(resolve(Options, {}, given), field)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"beem": 3}, ["'beem'", "beam, nbest, weight, fast, name, mode, sub"]),
        ({"beam": "four"}, ["beam", "int", "'four'"]),
        ({"beam": "4.5"}, ["beam", "int"]),
        ({"beam": 4.5}, ["beam", "4.5"]),
        ({"beam": True}, ["beam", "True"]),
        ({"beam": None}, ["beam", "int"]),
        ({"beam": "none"}, ["beam", "'none'"]),
        ({"weight": "nan"}, ["weight", "nan"]),
        ({"fast": "maybe"}, ["fast", "on/off", "'maybe'"]),
        ({"name": "z"}, ["name", "x, y", "'z'"]),
        ({"mode": "slow"}, ["mode", "Mode"]),
        ({"sub": "depth=3"}, ["sub", "Sub", "Python"]),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(given, words):
    with pytest.raises(OptionsError) as caught:
        resolve(Options, {}, given)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_resolution_order_is_default_then_legacy_then_given():
    assert resolve(Options, {}, {}).beam == 4
    assert resolve(Options, {"old_beam": "6", "old_weight": None}, {}) == Options(beam=6, weight=None)
    assert resolve(Options, {"old_beam": 6}, {"beam": 7}).beam == 7
    assert resolve(Options, {"other_family": 1}, {}) == Options()


def test_a_flat_name_may_be_given_like_the_own_one():
    assert resolve(Options, {"old_beam": 6}, {"old_beam": "7", "old_weight": "none"}) == Options(
        beam=7, weight=None
    )
    with pytest.raises(OptionsError, match="beam and old_beam are two names of one option"):
        resolve(Options, {}, {"old_beam": 7, "beam": 7})
    with pytest.raises(OptionsError, match="beam: expected int, got 'x'"):
        resolve(Options, {}, {"old_beam": "x"})


def test_describe_lists_every_field_as_declared():
    specs = {spec.name: spec for spec in describe(Options)}
    assert list(specs) == ["beam", "nbest", "weight", "fast", "name", "mode", "sub"]
    assert (specs["beam"].type, specs["beam"].default, specs["beam"].legacy) == ("int", 4, "old_beam")
    assert specs["nbest"].type == "int or none"
    assert specs["fast"].type == "on/off"
    assert specs["name"].choices == ("x", "y")


@given(st.integers())
def test_every_integer_survives_its_spelling(number):
    assert resolve(Options, {}, {"beam": str(number)}).beam == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_its_spelling(number):
    assert resolve(Options, {}, {"weight": repr(number)}).weight == number
