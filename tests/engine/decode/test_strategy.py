from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint

import pytest
from helpers.fake_models import FakeCtc, FakeModel, ar_strategy_class
from oasr.config import EngineConfig
from oasr.decode.options import option
from oasr.decode.strategy import FAMILIES, NoOptions, build_decode_strategy, register_decode_strategy
from oasr.errors import CapabilityError, OptionsError, RequestError
from oasr.models.interfaces import CAPABILITIES, declare_capability
from oasr.registry import Registry
from oasr.types import DecodingOptions


@dataclass(frozen=True)
class KnobOptions:
    knob: int = option(3, legacy="old_knob", doc="A knob.")


@pytest.fixture
def family(monkeypatch):
    """A family that is registered for one test."""

    class Family(FakeCtc):
        options_cls = KnobOptions

    loaded = dict(FAMILIES._loaded)
    monkeypatch.setattr(FAMILIES, "_loaded", loaded)
    return register_decode_strategy("fake_ctc")(Family)


def build(model=None, **config):
    return build_decode_strategy(
        model or FakeModel(), EngineConfig(**{"decode_method": "fake_ctc", **config})
    )


def test_options_are_resolved_once_at_construction(family):
    assert build().options.knob == 3
    assert build(legacy_options={"old_knob": "5"}).options.knob == 5
    assert build(legacy_options={"old_knob": 5}, decode_options={"knob": "7"}).options.knob == 7


def test_unknown_names_list_what_exists(family):
    with pytest.raises(OptionsError, match=r"decode family 'nope'; known: .*aed.*fake_ctc"):
        build(decode_method="nope")
    with pytest.raises(OptionsError, match=r"'nob'; valid: knob"):
        build(decode_options={"nob": 1})
    with pytest.raises(OptionsError, match="old_nob; known: old_knob"):
        build(legacy_options={"old_nob": 1})


def test_a_family_the_checkpoint_does_not_offer_is_refused_at_construction(family):
    with pytest.raises(
        CapabilityError, match=r"fake checkpoint cannot decode with 'fake_ctc'; it offers: fake_ar"
    ):
        build(FakeModel(families=("fake_ar",)))


def test_what_an_unadvertised_family_would_need_is_named(family, monkeypatch):
    monkeypatch.setitem(CAPABILITIES, "fake_ctc", ("forward_offline", "blank_id"))
    with pytest.raises(CapabilityError, match=r"it offers: fake_ar, and lacks the model members: blank_id$"):
        build(FakeModel(families=("fake_ar",)))


def test_advertised_but_missing_members_are_named(family, monkeypatch):
    monkeypatch.setitem(CAPABILITIES, "fake_ctc", ("forward_offline", "blank_id", "decoder.flux"))
    with pytest.raises(CapabilityError, match=r"lacks the model members: blank_id, decoder\.flux"):
        build()


def test_ctc_is_split_by_decoder_type():
    with pytest.raises(OptionsError, match="decode family 'ctc_wfst'"):
        build(decode_method="ctc", decoder_type="ctc_wfst")


def test_the_models_own_family_is_the_default(monkeypatch):
    monkeypatch.setattr(FAMILIES, "_loaded", {**FAMILIES._loaded, "fake_ar": ar_strategy_class()})
    assert build(decode_method=None).name == "fake_ar"


@pytest.mark.parametrize("name", ["task", "language", "prompt"])
def test_selective_options_are_refused_where_nobody_honours_them(name):
    strategy = FakeCtc(FakeModel(), NoOptions(), EngineConfig())
    value = "transcribe" if name == "task" else "en"
    with pytest.raises(RequestError, match=f"'{name}'"):
        strategy.validate_options(DecodingOptions(**{name: value}))
    strategy.model.encoder_options = (name,)
    strategy.validate_options(DecodingOptions(**{name: value}))
    strategy.model.encoder_options = ()
    strategy.selective_options = (name,)
    strategy.validate_options(DecodingOptions(**{name: value}))


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_a_blank_prompt_asks_for_nothing(prompt):
    FakeCtc(FakeModel(), NoOptions(), EngineConfig()).validate_options(DecodingOptions(prompt=prompt))


def test_an_encoder_option_is_resolved_by_the_model(monkeypatch):
    strategy = FakeCtc(FakeModel(), NoOptions(), EngineConfig())
    strategy.model.encoder_options = ("language",)

    def check(options):
        raise RequestError(f"no language {options.language}")

    strategy.model.validate_encoder_options = check
    with pytest.raises(RequestError, match="no language xx"):
        strategy.validate_options(DecodingOptions(language="xx"))


def test_word_timings_name_the_modes_that_work(monkeypatch):
    strategy = FakeCtc(FakeModel(), NoOptions(), EngineConfig())
    asked = DecodingOptions(word_timestamps=True)
    with pytest.raises(RequestError, match="modes that work: none"):
        strategy.validate_options(asked)
    monkeypatch.setattr(FakeCtc, "word_timing_modes", ("offline",))
    strategy.validate_options(asked)
    with pytest.raises(RequestError, match="streaming; modes that work: offline"):
        strategy.validate_options(asked, mode="streaming")


def test_more_hypotheses_than_the_family_has_are_refused():
    strategy = FakeCtc(FakeModel(), NoOptions(), EngineConfig())
    with pytest.raises(RequestError, match="at most 1 hypotheses"):
        strategy.validate_options(DecodingOptions(n_best=4))


def test_streaming_hooks_have_defaults_that_change_nothing():
    strategy = FakeCtc(FakeModel(), NoOptions(), EngineConfig())
    strategy.prewarm_streaming([1, 2], 16)
    assert strategy.finalize_batch([]) == []
    with pytest.raises(CapabilityError, match="does not stream"):
        strategy.finalize_batch([object()])


def test_a_second_claim_on_a_name_is_refused(family):
    class Other(FakeCtc):
        pass

    with pytest.raises(OptionsError, match="already registered"):
        register_decode_strategy("fake_ctc")(Other)


def test_capabilities_can_be_declared_from_outside(monkeypatch):
    monkeypatch.setattr("oasr.models.interfaces.CAPABILITIES", table := dict(CAPABILITIES))
    declare_capability("third_party", ["a.b"])
    assert table["third_party"] == ("a.b",)
    declare_capability("third_party", ["a.b"])
    with pytest.raises(CapabilityError, match=r"declared already with members a\.b"):
        declare_capability("third_party", ["c"])


def test_registries_read_entry_points_of_installed_packages(monkeypatch):
    points = [EntryPoint("theirs", "helpers.fake_models:FakeCtc", "oasr.test_group")]
    monkeypatch.setattr(
        "oasr.registry.entry_points", lambda group: points if group == "oasr.test_group" else []
    )
    registry = Registry("thing", "oasr.test_group", {"ours": "helpers.fake_models:FakeModel"})
    assert registry.names() == ["ours", "theirs"]
    assert registry.get("theirs") is FakeCtc
    clash = Registry("thing", "oasr.test_group", {"theirs": "helpers.fake_models:FakeModel"})
    with pytest.raises(OptionsError, match="taken already"):
        clash.names()


def test_an_entry_point_that_registered_itself_first_is_no_clash(monkeypatch):
    point = EntryPoint("theirs", "helpers.fake_models:FakeCtc", "oasr.test_group")
    monkeypatch.setattr("oasr.registry.entry_points", lambda group: [point])
    registry = Registry("thing", "oasr.test_group")
    registry.register("theirs")(FakeCtc)
    assert registry.names() == ["theirs"] and registry.get("theirs") is FakeCtc
    other = Registry("thing", "oasr.test_group")
    other.register("theirs")(FakeModel)
    for _ in range(2):  # a refusal is no less one when it is asked again
        with pytest.raises(OptionsError, match="taken already"):
            other.names()


def test_a_builtin_name_cannot_be_taken_before_it_is_loaded():
    registry = Registry("thing", "oasr.test_group", {"ours": "helpers.fake_models:FakeModel"})
    with pytest.raises(
        OptionsError, match=r"'ours' is already registered by 'helpers\.fake_models:FakeModel'"
    ):
        registry.register("ours")(FakeCtc)
    assert registry.register("ours")(FakeModel) is registry.get("ours") is FakeModel


@pytest.mark.parametrize("target", ["no_such_module_of_theirs:X", "helpers.fake_models:NoSuchName"])
def test_an_entry_of_an_installed_package_that_does_not_import_is_named(monkeypatch, target):
    monkeypatch.setattr(
        "oasr.registry.entry_points", lambda group: [EntryPoint("theirs", target, "oasr.test_group")]
    )
    with pytest.raises(OptionsError, match=f"thing 'theirs' .*{target}.*repair or uninstall"):
        Registry("thing", "oasr.test_group").get("theirs")


def test_a_capability_that_nobody_declared_is_named(family, monkeypatch):
    monkeypatch.setattr(FakeCtc, "capability", "undeclared")
    model = FakeModel(families=("undeclared",))
    with pytest.raises(CapabilityError, match=r"'undeclared' is not declared.*declare_capability"):
        build_decode_strategy(model, EngineConfig(decode_method="fake_ctc"))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("n_best", "3", "an integer"),
        ("n_best", 1.5, "an integer"),
        ("max_new_tokens", True, "an integer"),
        ("temperature", "hot", "a number"),
        ("temperature", float("nan"), "0 or within"),
        ("top_p", None, "a number"),
        ("prompt", 7, "a string"),
        ("prompt", "caf\udce9", "text that UTF-8 can write"),
        ("language", ["en"], "a string"),
        ("word_timestamps", 1, "True or False"),
    ],
)
def test_decoding_options_check_their_types(field, value, words):
    with pytest.raises(OptionsError, match=f"{field}: expected {words}"):
        DecodingOptions(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_batch_size", "16"),
        ("max_batch_size", 2.5),
        ("workers", True),
        ("threads", 1.5),
        ("max_decode_slots", 0),
        ("max_batch_seconds", float("inf")),
        ("max_batch_seconds", float("nan")),
        ("max_tick_ms", None),
        ("decode_kv_budget_gib", float("inf")),
        ("decode_admit_window_ms", float("nan")),
        ("decode_admit_window_ms", -1),
    ],
)
def test_engine_values_that_no_engine_could_use_are_named(field, value):
    with pytest.raises(OptionsError, match=f"{field}: expected an? (integer|number) >=? 0, got"):
        EngineConfig(**{field: value})


@pytest.mark.parametrize("field", ["workers", "threads"])
def test_more_threads_than_a_machine_has_room_for_are_refused(field):
    assert getattr(EngineConfig(**{field: 1024}), field) == 1024
    with pytest.raises(OptionsError, match=f"{field}: expected at most 1024, got 1025"):
        EngineConfig(**{field: 1025})


def test_an_empty_name_is_no_default(family):
    with pytest.raises(OptionsError, match="unknown decode family ''; known: "):
        build(decode_method="")
    with pytest.raises(OptionsError, match=r"model: expected a catalog name.*got ''"):
        EngineConfig(model="")


@pytest.mark.parametrize("value", ["en", 3, [("language", "en")]])
def test_decoding_options_are_no_loose_values(value):
    with pytest.raises(OptionsError, match="options: expected DecodingOptions or a mapping"):
        DecodingOptions.coerce(value)


def test_decoding_options_check_their_ranges():
    with pytest.raises(OptionsError, match="temperature"):
        DecodingOptions(temperature=-1)
    with pytest.raises(OptionsError, match="top_p"):
        DecodingOptions(top_p=0)
    with pytest.raises(OptionsError, match="unknown decoding option beams; known: n_best"):
        DecodingOptions.coerce({"beams": 3})
    assert DecodingOptions.coerce({"language": "de"}) == replace(DecodingOptions(), language="de")


def test_a_family_named_by_an_entry_point_alone_knows_its_name(monkeypatch):
    class Plain(FakeCtc):
        name = ""

    monkeypatch.setattr(FAMILIES, "_loaded", {**FAMILIES._loaded, "fake_ctc": Plain})
    strategy = build()
    with pytest.raises(RequestError, match="'fake_ctc'"):
        strategy.validate_options(DecodingOptions(n_best=2))
