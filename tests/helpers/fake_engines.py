"""Executors and engines around the fake models."""

from __future__ import annotations

from oasr.config import EngineConfig
from oasr.decode.incremental import ArOptions
from oasr.decode.strategy import FAMILIES, NoOptions
from oasr.engine import Engine
from oasr.executor.offline import OfflineExecutor

from helpers.fake_models import FakeCtc, FakeModel, ar_strategy_class


def make_executor(family="ar", model=None, strategy_options=None, **config):
    """An executor of rows of four; `family` is "ar" (incremental) or "ctc" (one-shot)."""
    config = EngineConfig(**{"max_batch_size": 4, **config})
    model = model or FakeModel()
    if family == "ar":
        strategy = ar_strategy_class()(model, strategy_options or ArOptions(), config)
    else:
        strategy = FakeCtc(model, NoOptions(), config)
    return OfflineExecutor(model, strategy, config)


def drain(executor, requests=()):
    """Every outcome of `requests`; the executor is closed."""
    waiting, outcomes = list(requests), []
    while waiting or executor.has_work:
        while waiting and executor.wants_more:
            executor.add(waiting.pop(0))
        outcomes += executor.step()
    executor.close()
    return outcomes


def make_engine(monkeypatch, model=None, **config):
    """An Engine around a fake model; the fake families are registered for this test alone."""
    monkeypatch.setattr(
        FAMILIES, "_loaded", {**FAMILIES._loaded, "fake_ar": ar_strategy_class(), "fake_ctc": FakeCtc}
    )
    monkeypatch.setattr("oasr.engine.load_model", lambda spec, device, dtype: model or FakeModel())
    return Engine(EngineConfig(**{"device": "cpu", "max_batch_size": 4, **config}))
