"""Engine: load once, transcribe many. START READING HERE.

    engine = Engine(EngineConfig(model="tiny.en"))
    for output in engine.transcribe(["a.wav", "b.flac"]):
        print(output.request_id, output.text)

The path of one run: rows → `audio.loader` (reader threads; recordings cut into windows) → `admission`
(options checked, windows queued as requests) → `executor.offline` (batches, encoder, decode family) →
`executor.results` (text, windows joined) → the caller.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import torch

from oasr.admission import Admission, planning, row_options
from oasr.audio.loader import AudioLoader, LoadedRow, LoaderSettings
from oasr.audio.pieces import Parts, PieceReader
from oasr.checkpoints import load_model
from oasr.config import EngineConfig
from oasr.decode.strategy import build_decode_strategy
from oasr.errors import OptionsError, RequestError
from oasr.executor.device import choose_device, choose_dtype
from oasr.executor.offline import OfflineExecutor
from oasr.executor.rescue import Outcome
from oasr.executor.results import ResultAssembler
from oasr.inputs import utterance_of, utterances_of
from oasr.types import DecodingOptions, RequestOutput, RowFailure, Utterance

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
        # Before the model: a detector that does not exist must not cost its loading.
        planning(self.config.vad, self.config.max_window_s, None).check()
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
        self._planning = planning(self.config.vad, self.config.max_window_s, self.model.max_window_s)
        self._planning.planner(self.sample_rate)
        self._admission = Admission(self.executor, self._results)
        self._open_ids: dict[int, str] = {}
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
        partial: bool = False,
    ) -> Generator[tuple[Row, RequestOutput], None, None]:
        """Transcribe `rows` and yield (row, result) pairs as they finish, or in the order of `rows`.

        A row that fails, here or before, is yielded too: nothing is lost. `settings` sets the
        channel policy and the read-ahead; its sample rate and planning are replaced by the engine's. With
        `in_order`, finished rows wait for those before them, at most the look-ahead window of them. With
        `partial`, the windows of a long recording are yielded as well, in order and as soon as they are
        final: outputs with `finished` False that hold their texts and segments, whatever `in_order` says.
        """
        settings = settings or LoaderSettings(sample_rate=self.sample_rate, workers=self.config.workers)
        settings = replace(
            settings,
            sample_rate=self.sample_rate,
            planning=self._planning,
            overtaking=settings.ahead_rows if in_order else None,
        )
        # Asked before the generator starts: admission numbers go on counting from one list to the next.
        first, driven = self._admission.count, self._drive(rows, options, settings, partial)
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
        settings: LoaderSettings,
        partial: bool,
    ) -> Iterator[Driven]:
        """The loop: fill the look-ahead window from the reader threads, tick, hand out what finished."""
        if self.has_work:
            raise OptionsError("this engine has requests in flight; finish them with run() before a new list")
        base = DecodingOptions.coerce(options)
        open_rows: dict[int, Row] = {}
        self.executor.interactive, self._results.partial = False, partial
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
                            # The rest of a refused recording would be decoded for nothing.
                            if not self._admission.wants(loaded):
                                loader.drop(loaded.number)
                    # Rows that need no decode go out before a tick, and do not cause one.
                    early = self._early()
                    for key, output in early or self._tick():
                        # A part of a long recording leaves its row open for the parts that follow.
                        yield key, open_rows.pop(key) if output.finished else open_rows[key], output
            finally:
                # Also reached when the caller drops the generator half-way: the engine stays usable.
                self.executor.counters.add("read", loader.waited_s)
                self.executor.counters.reader_seconds += loader.reading_s
                self._stopping, self.executor.interactive = False, True
                self._results.partial = False
                self._drop_work()

    # Owning the loop --------------------------------------------------------------------------

    def add_request(self, item: Any, options: DecodingOptions | Mapping[str, Any] | None = None) -> str:
        """Admit one item and return its id; its audio is read now, and held until it is decoded.

        Raises:
            OptionsError: an unknown option, or an id that is being worked on already.
            RequestError: an option that the family or checkpoint cannot honour.
            AudioError: the recording cannot be read.
        """
        row = utterance_of(item, self._admission.count)
        if isinstance(row, RowFailure):
            raise RequestError(row.message)
        # `step` hands results out by id alone: two open rows of one id could not be told apart.
        if row.id in self._open_ids.values():
            raise OptionsError(f"request id {row.id!r} is being worked on already; give each item its own id")
        chosen = row_options(DecodingOptions.coerce(options), row)
        self.strategy.validate_options(chosen)
        read: list[Parts] = []
        with self.executor.counters.time("read"):
            PieceReader(self.sample_rate, self._planning).read(row, read.append)
        if len(read[0]) > 1:
            raise RequestError(f"{row.id}: add_request takes one channel; give channel=0, 1, … or use stream")
        key = self._admission.take_whole(row, chosen, [parts[0][1] for parts in read])
        self._open_ids[key] = row.id
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
        return self._admission.early > 0 or self.executor.has_work

    @property
    def _hungry(self) -> bool:
        """True while more rows should be read before finished ones are handed out."""
        return self.executor.wants_more and self._admission.early < MAX_EARLY

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

    # Behind both ------------------------------------------------------------------------------

    def _admit(self, loaded: LoadedRow, base: DecodingOptions) -> int:
        """Take in what the loader has read; the admission number of its row."""
        return self._admission.admit(loaded, base)

    def _tick(self) -> list[tuple[int, RequestOutput]]:
        """One tick of the executor, behind whatever was finished before it."""
        finished = self._early()
        if self.executor.has_work:
            finished += self._assemble(self.executor.step())
        return finished

    def _early(self) -> list[tuple[int, RequestOutput]]:
        """Rows that ended at admission: failures and digital silence."""
        ended, silent = self._admission.collect()
        return ended + self._assemble(silent)

    def _assemble(self, outcomes: list[Outcome]) -> list[tuple[int, RequestOutput]]:
        if not outcomes:
            return []
        with self.executor.counters.time("output"):
            pairs = [(outcome.request.key, self._results.add(outcome)) for outcome in outcomes]
        return [(key, output) for key, output in pairs if output is not None]

    def _drop_work(self) -> None:
        """Forget what an abandoned list left behind, so that the engine can be used again."""
        self.executor.drop_all()
        self._results.clear()
        self._admission.clear()


def _sorted_by_key(driven: Iterator[Driven], first: int) -> Iterator[Driven]:
    """The same results in the order of their keys, which count up from `first`; gaps only at a stop."""
    waiting: dict[int, Driven] = {}
    for one in driven:
        if not one[2].finished:
            yield one
            continue
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
