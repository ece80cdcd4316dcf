"""`oasr families` prints what the declarations say."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from oasr.decode.options import describe, option
from oasr.decode.strategy import FAMILIES, DecodeStrategy

from oasr_cli import console
from oasr_cli.commands import families


def test_every_family_and_every_option_is_there(oasr):
    done = oasr("families", "--json")
    assert done.code == 0
    told = {family["name"]: family for family in json.loads(done.out)}
    assert list(told) == FAMILIES.names()
    for name, cls in FAMILIES.items():
        family = told[name]
        assert (family["capability"], family["consumes"], family["incremental"]) == (
            cls.capability, cls.consumes, cls.incremental,
        )  # fmt: skip
        assert [o["name"] for o in family["options"]] == [spec.name for spec in describe(cls.options_cls)]
        assert all(o["doc"] and o["type"] for o in family["options"])


def test_the_readable_form_names_every_option_with_type_default_and_doc(oasr):
    text = oasr("families").out
    for name, cls in FAMILIES.items():
        assert f"\n{name}  " in f"\n{text}"
        for spec in describe(cls.options_cls):
            assert f"{spec.name}\t" in text and spec.doc in text
    assert "window\tfull | auto\tfull\t" in text


def test_a_table_on_a_terminal_holds_the_same(oasr, monkeypatch):
    monkeypatch.setattr(console, "stdout_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    text = oasr("families").out
    assert "\t" not in text and "option" in text and "no_speech_threshold" in text


@dataclass(frozen=True)
class ToyOptions:
    beam: int = option(4, doc="Beam width.", legacy="toy_beam")
    tie: str | None = option(None, doc="Ties.")
    fused: bool = option(True, doc="One kernel.")


class Toy(DecodeStrategy):
    """Toy decoding.

    More about it.
    """

    capability = "toy"
    consumes = "both"
    options_cls = ToyOptions
    word_timing_modes = ("offline",)


def test_a_family_from_elsewhere_is_described_alike(capfd):
    told = families.describe_family("toy", Toy)
    assert told["about"] == "Toy decoding." and told["word_timing_modes"] == ["offline"]
    families._print(told)
    out = capfd.readouterr().out
    assert "needs toy · consumes hidden and log_probs · one-shot" in out
    assert "honours no selective option · word times: offline" in out
    assert "beam\tint\t4\tBeam width. (also set by the old name toy_beam)" in out
    assert "tie\tstr or none\tnone\tTies." in out and "fused\ton/off\ton\tOne kernel." in out


@pytest.mark.parametrize("modes", [property(lambda self: ("offline",))])
def test_word_times_that_depend_on_the_options_are_said_to(modes):
    cls = type("Depends", (Toy,), {"word_timing_modes": modes})
    assert families.describe_family("depends", cls)["word_timing_modes"] is None
