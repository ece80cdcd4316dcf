"""Engine: load once, transcribe many. START READING HERE.

    engine = Engine(EngineConfig(model="tiny.en"))
    for output in engine.transcribe(["a.wav", "b.flac"]):
        print(output.request_id, output.text)

The path of one run: rows → `audio.loader` (reader threads) → `_admit` (options checked, long audio
cut into windows) → `executor.offline` (batches, encoder, decode family) → `executor.results`
(text, windows joined) → the caller.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import torch

from oasr.admission import cut_windows, row_options
from oasr.audio.loader import AudioLoader, LoadedRow, LoaderSettings
from oasr.audio.segment import holds_no_speech
from oasr.audio.waveform import read_waveforms
from oasr.checkpoints import load_model
from oasr.config import EngineConfig
from oasr.decode.strategy import build_decode_strategy
from oasr.errors import OptionsError, RequestError, RowError
from oasr.executor.device import choose_device, choose_dtype
from oasr.executor.offline import OfflineExecutor
from oasr.executor.rescue import Outcome
from oasr.executor.results import ResultAssembler, failure
from oasr.inputs import utterance_of, utterances_of
from oasr.types import DecodingOptions, Hypothesis, RequestOutput, RowFailure, Utterance, Waveform

Row = Utterance | RowFailure
MAX_EARLY = 32
"""Rows that may end at admission before they are handed out."""
Driven = tuple[int, Row, RequestOutput]
"""Admission number, row, result."""


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
        if self.dtype == "float32" and self.device.type == "cuda":
            # float32 means float32: cuDNN would round convolutions to 10-bit mantissas by default.
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        if self.config.threads is not None:
            torch.set_num_threads(self.config.threads)
        # Under "auto" the checkpoint has a say: kernels of int16 need heads of one size.
        automatic = self.config.dtype == "auto" and self.dtype == "int16"
        self.model = load_model(
            os.fspath(self.config.model), self.device, "float32" if automatic else self.dtype
        )
        if automatic and self.model.offers_fixed16:
            self.model.use_fixed16()
        elif automatic:
            self.dtype = "float32"
        self.strategy = build_decode_strategy(self.model, self.config)
        self.executor = OfflineExecutor(self.model, self.strategy, self.config)
        self._results = ResultAssembler(self.model.tokenizer)
        self._ready: list[tuple[int, RequestOutput]] = []
        self._silent: list[Outcome] = []
        self._open_ids: dict[int, str] = {}
        self._admitted = 0
        self._stopping = False

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
        for _, output in self.stream(utterances_of(items), options, in_order=True):
            yield output

    def stream(
        self,
        rows: Iterable[Row],
        options: DecodingOptions | Mapping[str, Any] | None = None,
        settings: LoaderSettings | None = None,
        in_order: bool = False,
    ) -> Iterator[tuple[Row, RequestOutput]]:
        """Transcribe `rows` and yield (row, result) pairs as they finish, or in the order of `rows`.

        A row that fails, here or before, is yielded too: nothing is lost. `settings` sets the
        channel policy and the read-ahead; its sample rate is replaced by the model's. With
        `in_order`, finished rows wait for those before them, at most the look-ahead window of them.
        """
        first, driven = self._admitted, self._drive(rows, options, settings)
        for _, row, output in _sorted_by_key(driven, first) if in_order else driven:
            yield row, output

    def stop(self) -> None:
        """Let `stream` and `transcribe` end with the rows that are in flight; the others do not come out.

        Only sets a flag, so that a signal handler or another thread may call it.
        """
        self._stopping = True

    def _drive(
        self,
        rows: Iterable[Row],
        options: DecodingOptions | Mapping[str, Any] | None,
        settings: LoaderSettings | None,
    ) -> Iterator[Driven]:
        """The loop: fill the look-ahead window from the reader threads, tick, hand out what finished."""
        if self.has_work:
            raise OptionsError("this engine has requests in flight; finish them with run() before a new list")
        base = DecodingOptions.coerce(options)
        settings = settings or LoaderSettings(sample_rate=self.sample_rate, workers=self.config.workers)
        open_rows: dict[int, Row] = {}
        self.executor.interactive = False
        settings = replace(settings, sample_rate=self.sample_rate)
        with AudioLoader(rows, settings, halted=lambda: self._stopping) as loader:
            source, exhausted = iter(loader), False
            try:
                while not exhausted or self.has_work:
                    if self._stopping:
                        exhausted = True
                        self.executor.drop_waiting()
                    while not (exhausted or self._stopping) and self._hungry:
                        loaded = next(source, None)
                        exhausted = loaded is None
                        if loaded is not None:
                            open_rows[self._admit(loaded, base)] = _row_of(loaded)
                    # Rows that need no decode go out before a tick, and do not cause one.
                    early = self._early()
                    for key, output in early or self._tick():
                        yield key, open_rows.pop(key), output
            finally:
                self._stopping, self.executor.interactive = False, True
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
        chosen = row_options(DecodingOptions.coerce(options), row)
        self.strategy.validate_options(chosen)
        parts = read_waveforms(row, self.sample_rate)
        if len(parts) > 1:
            raise RequestError(f"{row.id}: add_request takes one channel; give channel=0, 1, … or use stream")
        key = self._next_key()
        self._open_ids[key] = row.id
        self._enqueue(key, row, parts[0][1], chosen)
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
        return bool(self._ready or self._silent) or self.executor.has_work

    @property
    def _hungry(self) -> bool:
        """True while more rows should be read before finished ones are handed out."""
        return self.executor.wants_more and len(self._ready) + len(self._silent) < MAX_EARLY

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
        row, waveform = loaded.utterance, loaded.waveform
        if row is None or waveform is None:
            failed = loaded.failure
            error = RowError(failed.message if failed else "the reader returned no audio")
            error.stage = failed.stage if failed else "audio"
            self._ready.append((key, failure(failed.id if failed else "", error)))
            return key
        try:
            options = row_options(base, row)
            self.strategy.validate_options(options)
        except (RequestError, OptionsError) as refused:
            self._ready.append((key, failure(row.id, RequestError(str(refused)))))
            return key
        self._enqueue(key, row, waveform, options)
        return key

    def _enqueue(self, key: int, row: Utterance, waveform: Waveform, options: DecodingOptions) -> None:
        """Queue the windows of a row; digital silence is finished before it starts."""
        requests = cut_windows(row, waveform, self.model.max_window_s, options, key)
        self._results.expect(key, len(requests), waveform.duration_s, waveform.warnings)
        for request in requests:
            if holds_no_speech(request.samples, request.sample_rate):
                language = self.model.stated_language(options)
                self._silent.append(Outcome(request, (Hypothesis((), 0.0, language=language),)))
            else:
                self.executor.add(request)

    def _next_key(self) -> int:
        self._admitted += 1
        return self._admitted - 1

    def _tick(self) -> list[tuple[int, RequestOutput]]:
        """One tick of the executor, behind whatever was finished before it."""
        finished = self._early()
        if self.executor.has_work:
            finished += self._assemble(self.executor.step())
        return finished

    def _early(self) -> list[tuple[int, RequestOutput]]:
        """Rows that ended at admission: failures and digital silence."""
        ready, silent = self._ready, self._silent
        self._ready, self._silent = [], []
        return ready + self._assemble(silent)

    def _assemble(self, outcomes: list[Outcome]) -> list[tuple[int, RequestOutput]]:
        pairs = [(outcome.request.key, self._results.add(outcome)) for outcome in outcomes]
        return [(key, output) for key, output in pairs if output is not None]

    def _drop_work(self) -> None:
        """Forget what an abandoned list left behind, so that the engine can be used again."""
        self.executor.drop_all()
        self._results.clear()
        self._ready.clear()
        self._silent.clear()


def _sorted_by_key(driven: Iterator[Driven], first: int) -> Iterator[Driven]:
    """The same results in the order of their keys, which count up from `first`; gaps only at a stop."""
    waiting: dict[int, Driven] = {}
    for one in driven:
        waiting[one[0]] = one
        while first in waiting:
            yield waiting.pop(first)
            first += 1
    yield from (waiting[key] for key in sorted(waiting))


def _row_of(loaded: LoadedRow) -> Row:
    row = loaded.failure or loaded.utterance
    if row is None:
        raise RuntimeError("the reader returned neither a row nor a failure")
    return row
