"""Engine: load once, transcribe many. START READING HERE.

    engine = Engine(EngineConfig(model="tiny.en"))
    for output in engine.transcribe(["a.wav", "b.flac"]):
        print(output.request_id, output.text)

The path of one run: rows → `audio.loader` (reader threads) → `_admit` (options checked, long audio
cut into windows) → `executor.offline` (batches, encoder, decode family) → `executor.results`
(text, windows joined) → the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import torch

from oasr.audio.loader import AudioLoader, LoadedRow, LoaderSettings, load_waveform
from oasr.audio.segment import plan_windows
from oasr.checkpoints import load_model
from oasr.config import EngineConfig
from oasr.decode.strategy import build_decode_strategy
from oasr.errors import OptionsError, RequestError, RowError
from oasr.executor.device import choose_device, choose_dtype
from oasr.executor.offline import OfflineExecutor
from oasr.executor.results import ResultAssembler, failure
from oasr.inputs import utterance_of, utterances_of
from oasr.types import DecodingOptions, Request, RequestOutput, RowFailure, Utterance, Waveform

Row = Utterance | RowFailure


class Engine:
    """One loaded model with its decode family. Not thread-safe; use one engine a thread.

    Two ways to use it: `transcribe` (or `stream`) drives everything; `add_request`, `step` and
    `run` are for callers who own the loop.
    """

    def __init__(self, config: EngineConfig | None = None, **fields: Any) -> None:
        """Load the model that `config` (or the EngineConfig fields given by name) describes.

        Raises:
            OptionsError: a value that cannot be used.
            CapabilityError: the checkpoint cannot serve the family.
            CheckpointError: the model cannot be found, verified or loaded.
        """
        if config is not None and fields:
            raise OptionsError("give either an EngineConfig or its fields by name, not both")
        self.config = config or EngineConfig(**fields)
        self.device = choose_device(self.config.device)
        self.dtype = choose_dtype(self.config.dtype, self.device)
        if self.config.threads is not None:
            torch.set_num_threads(self.config.threads)
        self.model = load_model(self.config.model, self.device, self.dtype)
        self.strategy = build_decode_strategy(self.model, self.config)
        self.executor = OfflineExecutor(self.model, self.strategy, self.config)
        self._results = ResultAssembler(self.model.tokenizer)
        self._ready: list[tuple[int, RequestOutput]] = []
        self._open_ids: dict[int, str] = {}
        self._admitted = 0

    # Driving everything -----------------------------------------------------------------------

    def transcribe(
        self, items: Iterable[Any], options: DecodingOptions | Mapping[str, Any] | None = None
    ) -> Iterator[RequestOutput]:
        """Transcribe `items`; yields one result an item, in their order, as soon as it is the next.

        Args:
            items: paths, Utterances, or (samples, sample_rate) pairs, where samples is a float or
                integer array (frames,) or (frames, channels). A generator is read lazily.
            options: decoding options of every item (a mapping names DecodingOptions fields).
        """
        waiting: dict[int, RequestOutput] = {}
        upcoming = self._admitted
        for key, _, output in self._drive(utterances_of(items), options, None):
            waiting[key] = output
            while upcoming in waiting:
                yield waiting.pop(upcoming)
                upcoming += 1

    def stream(
        self,
        rows: Iterable[Row],
        options: DecodingOptions | Mapping[str, Any] | None = None,
        settings: LoaderSettings | None = None,
    ) -> Iterator[tuple[Row, RequestOutput]]:
        """Transcribe `rows` and yield (row, result) pairs as they finish, in any order.

        A row that fails, here or before, is yielded too: nothing is lost. `settings` sets the
        channel policy and the read-ahead; its sample rate is replaced by the model's.
        """
        for _, row, output in self._drive(rows, options, settings):
            yield row, output

    def _drive(
        self,
        rows: Iterable[Row],
        options: DecodingOptions | Mapping[str, Any] | None,
        settings: LoaderSettings | None,
    ) -> Iterator[tuple[int, Row, RequestOutput]]:
        """The loop: fill the look-ahead window from the reader threads, tick, hand out what finished."""
        if self.has_work:
            raise OptionsError("this engine has requests in flight; finish them with run() before a new list")
        base = DecodingOptions.coerce(options)
        settings = settings or LoaderSettings(sample_rate=self.sample_rate, workers=self.config.workers)
        open_rows: dict[int, Row] = {}
        with AudioLoader(rows, replace(settings, sample_rate=self.sample_rate)) as loader:
            source, exhausted = iter(loader), False
            try:
                while not exhausted or self.has_work:
                    while not exhausted and self.executor.wants_more:
                        loaded = next(source, None)
                        exhausted = loaded is None
                        if loaded is not None:
                            key = self._admit(loaded, base)
                            open_rows[key] = (
                                loaded.failure if loaded.failure is not None else loaded.utterance
                            )
                    for key, output in self._tick():
                        yield key, open_rows.pop(key), output
            finally:
                self._drop_work()

    # Owning the loop --------------------------------------------------------------------------

    def add_request(self, item: Any, options: DecodingOptions | Mapping[str, Any] | None = None) -> str:
        """Admit one item and return its id; its audio is read now.

        Raises:
            OptionsError: an unknown option, or an id that is being worked on already.
            RequestError: an option that the family or checkpoint cannot honour.
            AudioError: the recording cannot be read.
        """
        row = utterance_of(item, self._admitted)
        if isinstance(row, RowFailure):
            raise RequestError(row.message)
        if row.id in self._open_ids.values():
            raise OptionsError(f"request id {row.id!r} is being worked on already; give each item its own id")
        chosen = _row_options(DecodingOptions.coerce(options), row)
        self.strategy.validate_options(chosen)
        waveform = load_waveform(row, LoaderSettings(sample_rate=self.sample_rate, workers=1))
        key = self._next_key()
        self._open_ids[key] = row.id
        self._enqueue(key, row.id, waveform, chosen)
        return row.id

    def step(self) -> list[RequestOutput]:
        """Do one tick of work and return the requests that finished in it."""
        finished = self._tick()
        for key, _ in finished:
            self._open_ids.pop(key, None)
        return [output for _, output in finished]

    def run(self) -> Iterator[RequestOutput]:
        """Step until every admitted request has come out."""
        while self.has_work:
            yield from self.step()

    @property
    def has_work(self) -> bool:
        """True until every admitted request has come out."""
        return bool(self._ready) or self.executor.has_work

    @property
    def sample_rate(self) -> int:
        """The model's sample rate in Hz."""
        return self.model.frontend.sample_rate

    def close(self) -> None:
        """Release threads; the engine cannot be used afterwards."""
        self.executor.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Admission --------------------------------------------------------------------------------

    def _admit(self, loaded: LoadedRow, base: DecodingOptions) -> int:
        """Check a row's options and queue its windows; a refusal becomes its result."""
        key = self._next_key()
        if loaded.failure is not None:
            error = RowError(loaded.failure.message)
            error.stage = loaded.failure.stage
            self._ready.append((key, failure(loaded.failure.id, error)))
            return key
        try:
            options = _row_options(base, loaded.utterance)
            self.strategy.validate_options(options)
        except (RequestError, OptionsError) as refused:
            self._ready.append((key, failure(loaded.utterance.id, RequestError(str(refused)))))
            return key
        self._enqueue(key, loaded.utterance.id, loaded.waveform, options)
        return key

    def _enqueue(self, key: int, request_id: str, waveform: Waveform, options: DecodingOptions) -> None:
        """Cut audio beyond the model's window at its quietest places and queue each window."""
        limit = self.model.max_window_s
        samples, rate = waveform.samples, waveform.sample_rate
        windows = [(0, len(samples))] if limit is None else plan_windows(samples, rate, limit)
        self._results.expect(key, len(windows), waveform.duration_s, waveform.warnings)
        now = time.perf_counter()
        for number, (start, end) in enumerate(windows):
            self.executor.add(
                Request(
                    request_id,
                    samples[start:end],
                    rate,
                    options=options,
                    key=key,
                    window=number,
                    start_s=waveform.start_s + start / rate,
                    admitted_at=now,
                )
            )

    def _next_key(self) -> int:
        self._admitted += 1
        return self._admitted - 1

    def _tick(self) -> list[tuple[int, RequestOutput]]:
        finished, self._ready = self._ready, []
        for outcome in self.executor.step() if self.executor.has_work else ():
            output = self._results.add(outcome)
            if output is not None:
                finished.append((outcome.request.key, output))
        return finished

    def _drop_work(self) -> None:
        """Forget what an abandoned list left behind, so that the engine can be used again."""
        self.executor.drop_all()
        self._results.clear()
        self._ready.clear()


def _row_options(base: DecodingOptions, row: Utterance) -> DecodingOptions:
    """The run's options with what the row itself says about language, task and prompt."""
    own = {
        name: value for name in ("language", "task", "prompt") if (value := getattr(row, name)) is not None
    }
    return replace(base, **own) if own else base
