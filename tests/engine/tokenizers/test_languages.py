"""What a user may call a language."""

from __future__ import annotations

import pytest
from oasr.tokenizers.languages import NAMES, OTHER_NAMES, describe, find_language


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("de", "de"), ("DE", "de"), ("German", "de"), (" german ", "de"), ("Castilian", "es"),
        ("mandarin", "zh"), ("en-US", "en"), ("pt_BR", "pt"), ("Haitian Creole", "ht"), ("haw", "haw"),
        ("jv", "jw"), ("xx", None), ("", None), ("klingon", None), ("english!", None),
        ("nb-NO", "no"), ("jv_ID", "jw"), ("mandarin-x", None), ("german-x", None),
    ],
)  # fmt: skip
def test_find_language(text: str, code: str | None) -> None:
    assert find_language(text, NAMES) == code


def test_only_known_codes_come_back() -> None:
    assert find_language("cantonese", ("en", "zh")) is None
    assert find_language("Cantonese", ("yue",)) == "yue"


def test_tables_are_consistent() -> None:
    assert len(NAMES) == 100 and len(set(NAMES.values())) == 100
    assert set(OTHER_NAMES.values()) <= set(NAMES) and not set(OTHER_NAMES) & set(NAMES)
    assert describe("de") == "de (german)" and describe("xx") == "xx"


@pytest.mark.weights("base")
def test_every_language_of_the_multilingual_model_has_a_name() -> None:
    import torch
    from oasr.checkpoints import load_model

    assert set(load_model("base", torch.device("cpu"), "float32").language_ids) == set(NAMES) - {"yue"}
