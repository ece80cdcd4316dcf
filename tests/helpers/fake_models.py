"""Tiny models whose transcript is written into the audio, so that every mix-up shows.

A clip's samples all carry one number n (scaled by 1/1000). The incremental fake emits the labels
n, n+1, … (n % 7 of them, then the end label 0); the one-shot fake emits (n,).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from oasr.decode.pending import PendingReadback
from oasr.decode.strategy import DecodeStrategy
from oasr.models.interfaces import CAPABILITIES, AsrModel, EncoderOutput
from oasr.types import Hypothesis, Request

VOCAB = 1200
RATE = 1000


def clip(number: int, samples: int = 50) -> np.ndarray:
    """A clip whose transcript is `number`."""
    return np.full(samples, number / 1000, dtype=np.float32)


def request(number: int, samples: int = 50, key: int | None = None, **options) -> Request:
    """A request for `clip(number)`."""
    from oasr.types import DecodingOptions

    return Request(
        f"u{number}",
        clip(number, samples),
        RATE,
        DecodingOptions(**options),
        key=number if key is None else key,
    )


def expected_tokens(number: int) -> tuple[int, ...]:
    """What the incremental fake emits for `clip(number)`."""
    return tuple(range(number, number + number % 7))


class FakeTokenizer:
    """Renders labels as numbers."""

    def decode(self, ids) -> str:
        return " ".join(map(str, ids))


class FakeFrontend:
    sample_rate = RATE

    def __init__(self, window: int | None = 200) -> None:
        self.window = window

    def window_samples(self, n_samples: int) -> int:
        return self.window or n_samples

    def __call__(self, samples, lengths):
        return samples[:, :, None], lengths


class FakeDecoder:
    """Knows each row's number and how many labels it has emitted."""

    def __init__(self, owner) -> None:
        self.owner = owner
        self.widths: list[int] = []

    def prefill(self, tokens, encoder_out, capacity, prompt_lens=None):
        self.owner.touch(encoder_out.hidden[:, 0, 0])
        numbers = [round(float(x) * 1000) for x in encoder_out.hidden[:, 0, 0]]
        state = {"numbers": numbers, "emitted": [0] * len(numbers)}
        return self._logits(state), state

    def step(self, tokens, state):
        self.widths.append(len(state["numbers"]))
        for number, emitted, token in zip(state["numbers"], state["emitted"], tokens.tolist(), strict=True):
            if emitted < number % 7 and token != number + emitted:
                raise RuntimeError(f"row {number} was fed {token}")
        state["emitted"] = [n + 1 for n in state["emitted"]]
        if self.owner.step_error is not None and self.owner.step_error[0] in state["numbers"]:
            raise self.owner.step_error[1]
        return self._logits(state)

    def _logits(self, state):
        logits = torch.zeros(len(state["numbers"]), VOCAB)
        for row, (number, emitted) in enumerate(zip(state["numbers"], state["emitted"], strict=True)):
            logits[row, number + emitted if emitted < number % 7 else 0] = 10.0
        return logits

    def select(self, state, index):
        return {key: [values[i] for i in index.tolist()] for key, values in state.items()}

    def can_merge(self, a, b):
        return True

    def merge(self, a, b):
        return {key: a[key] + b[key] for key in a}


class FakeModel(AsrModel):
    architecture = "fake"
    default_decode_type = "fake_ar"
    subsampling_rate = 1
    max_window_s = 0.2

    def __init__(self, window: int | None = 200, families=("fake_ar", "fake_ctc")) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.frontend = FakeFrontend(window)
        self.tokenizer = FakeTokenizer()
        self.decoder = FakeDecoder(self)
        self.families = tuple(families)
        self.poison: dict[int, Exception] = {}
        self.step_error: tuple[int, Exception] | None = None
        self.max_rows: int | None = None
        self.batches: list[int] = []

    @property
    def capabilities(self):
        return self.families

    def touch(self, firsts) -> None:
        for x in firsts:
            error = self.poison.get(round(float(x) * 1000))
            if error is not None:
                raise error

    def encode_offline(self, features, lengths, **conditioning):
        self.batches.append(len(features))
        if self.max_rows is not None and len(features) > self.max_rows:
            raise torch.OutOfMemoryError("fake: too many rows")
        self.touch(features[:, 0, 0])
        return EncoderOutput(lengths=lengths.cpu(), hidden=features)

    forward_offline = encode_offline


CAPABILITIES.setdefault("fake_ar", ("encode_offline", "decoder.prefill", "decoder.step"))
CAPABILITIES.setdefault("fake_ctc", ("forward_offline",))


def ar_strategy_class():
    """The incremental fake family (built late: importing it registers nothing)."""
    from oasr.decode.groups import Row
    from oasr.decode.incremental import IncrementalArStrategy, Prefilled

    class FakeAr(IncrementalArStrategy):
        name = "fake_ar"
        capability = "fake_ar"
        end_ids = frozenset((0,))

        def prefill(self, encoder_out, requests):
            logits, state = self.model.decoder.prefill(None, encoder_out, 8)
            limit = [r.options.max_new_tokens or 100 for r in requests]
            return Prefilled([Row(r, n) for r, n in zip(requests, limit, strict=True)], state, logits)

    return FakeAr


@dataclass(frozen=True)
class _CtcOptions:
    pass


class FakeCtc(DecodeStrategy):
    """One-shot fake: one label a row; `asynchronous` queues the read-back."""

    name = "fake_ctc"
    capability = "fake_ctc"
    consumes = "log_probs"
    asynchronous = True

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.log: list[str] = []

    def decode_offline(self, encoder_out, requests):
        self.log.append("sync")
        return self._finish([encoder_out.hidden[:, 0, 0]])

    def decode_offline_async(self, encoder_out, requests):
        if not self.asynchronous:
            return None
        self.log.append(f"launch {len(requests)}")
        outer = self

        class Pending(PendingReadback):
            def collect(self):
                outer.log.append(f"collect {len(requests)}")
                return super().collect()

        return Pending([encoder_out.hidden[:, 0, 0]], self._finish)

    def _finish(self, tensors):
        return [(Hypothesis((round(float(x) * 1000),), 0.0),) for x in tensors[0]]
