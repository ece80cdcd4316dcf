"""Timed passes of a list through `Engine.stream`, as `oasr transcribe` drives it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.bench import environment
from oasr.bench.memory import PeakMemory
from oasr.bench.watch import Row, Watch
from oasr.engine import Engine
from oasr.executor.counters import Counters
from oasr.output.jsonl import encode_line
from oasr.output.rows import RowExtras, result_row
from oasr.scoring.wer import Scorer
from oasr.types import DecodingOptions, RequestOutput

if TYPE_CHECKING:
    from oasr.audio.loader import LoaderSettings


@dataclass(frozen=True, slots=True)
class Work:
    """What every pass does.

    Attributes:
        rows: the list; iterated anew in each pass.
        options: decoding options of every row.
        settings: how recordings are read; the sample rate is the model's whatever it says.
        reference: the true text of a row, or None.
        repeat, warmup: measured passes, and passes before them.
    """

    rows: Iterable[Row]
    options: DecodingOptions
    settings: LoaderSettings
    reference: Callable[[Row], str | None]
    repeat: int = 3
    warmup: int = 1


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the list.

    Attributes:
        arrivals_s: seconds from the start of the pass to each result, in the order they came.
        audio_after_s: audio seconds of the results that had come by then, its own included.
        latencies_s: `RequestOutput.latency_s` of the rows that were transcribed, in the order they came.
        rows, failed: results, and those of them without a transcript.
        counters: what the executor counted in this pass.
        texts_sha256: digest of every row's place and text: equal when the transcripts are.
    """

    arrivals_s: tuple[float, ...]
    audio_after_s: tuple[float, ...]
    latencies_s: tuple[float, ...]
    rows: int
    failed: int
    counters: Counters
    texts_sha256: str

    @property
    def wall_s(self) -> float:
        """From the first row asked for to the last result."""
        return self.arrivals_s[-1]

    @property
    def audio_s(self) -> float:
        """Seconds of audio that were transcribed; failed rows count nothing."""
        return self.audio_after_s[-1]

    def steady_rtfx(self, in_flight: int) -> float | None:
        """Audio seconds a second over the middle half of the results.

        A quarter at each end is left out, for there the pipeline fills and empties. None where a
        quarter is fewer rows than may be `in_flight`: such a list has no steady state.
        """
        quarter = self.rows // 4
        if quarter < in_flight:
            return None
        # From the last arrival of the first quarter, when the middle half begins.
        first, last = quarter - 1, self.rows - quarter - 1
        took = self.arrivals_s[last] - self.arrivals_s[first]
        return (self.audio_after_s[last] - self.audio_after_s[first]) / took if took > 0 else None


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that was measured at one batch size.

    Attributes:
        in_flight: rows that may decode at once.
        load_s: making the engine; torch is imported before, what the checkpoint's format needs may not be.
        warmups, passes: the passes before the measurement and those of it.
        start_rss_bytes: resident before loading.
        peak_rss_bytes, peak_rss_scope, peak_gpu_bytes: from then on; see PeakMemory.
        score: error counts of the first measured pass (`Scorer.as_dict`).
    """

    batch_size: int
    in_flight: int
    device: str
    dtype: str
    decode_method: str
    model: dict[str, Any]
    environment: dict[str, Any]
    load_s: float
    warmups: tuple[Pass, ...]
    passes: tuple[Pass, ...]
    start_rss_bytes: int
    peak_rss_bytes: int
    peak_rss_scope: str
    peak_gpu_bytes: int | None
    score: dict[str, Any]


def measure(load: Callable[[], Engine], work: Work, watch: Watch) -> Measured | None:
    """Load an engine, warm it up, and time `work.repeat` passes; None when stopped before one was whole.

    Raises:
        OasrError: the engine cannot be made, or the run broke.
    """
    # Before anything is loaded: later the load of the machine would be our own.
    memory, busy = PeakMemory(), environment.load_average()
    start = time.perf_counter()
    engine = load()
    load_s = time.perf_counter() - start
    with engine:
        engine.executor.counters.measure_device(engine.device)
        described = environment.describe(engine) | {"load_average": busy}
        warmups, _ = _passes(engine, work, watch, _names("warm-up", work.warmup))
        passes, first = _passes(engine, work, watch, _names("pass", work.repeat))
        if first is None:
            return None
        # Before scoring, whose libraries a run without --wer does not load.
        resident, on_gpu = memory.resident_bytes(), memory.gpu_bytes(engine.device)
        return Measured(
            batch_size=engine.config.max_batch_size,
            in_flight=engine.config.max_decode_slots or 2 * engine.config.max_batch_size,
            device=str(engine.device),
            dtype=engine.dtype,
            decode_method=engine.strategy.name,
            model=environment.model_facts(engine),
            environment=described,
            load_s=load_s,
            warmups=warmups,
            passes=passes,
            start_rss_bytes=memory.start_bytes,
            peak_rss_bytes=resident,
            peak_rss_scope=memory.scope,
            peak_gpu_bytes=on_gpu,
            score=first.score(work),
        )


def _passes(
    engine: Engine, work: Work, watch: Watch, names: Sequence[str]
) -> tuple[tuple[Pass, ...], Timed | None]:
    """A pass a name, fewer when stopped, and what came out in the first of them."""
    passes: list[Pass] = []
    first: Timed | None = None
    for name in names:
        if watch.stopped:
            break
        watch.begin(engine, name)
        timed = one_pass(engine, work, watch)
        if watch.stopped:
            break
        # Only whole passes come here; one that was stopped measured a part of the list.
        passes.append(timed.summed_up())
        first = first or timed
        watch.end(passes[-1])
    return tuple(passes), first


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind} {number} of {count}" for number in range(1, count + 1)]


@dataclass(slots=True)
class Timed:
    """The results of a pass as they came, with their times; nothing is worked out while the clock runs."""

    counters: Counters = field(default_factory=Counters)
    results: list[tuple[float, Row, RequestOutput]] = field(default_factory=list)

    def summed_up(self) -> Pass:
        """What is kept of the pass."""
        audio_s, audio_after = 0.0, []
        for _, _, output in self.results:
            audio_s += output.duration_s if output.ok else 0.0
            audio_after.append(audio_s)
        done = [output for _, _, output in self.results if output.ok]
        texts = sorted((row.index, row.part, output.text) for _, row, output in self.results if output.ok)
        return Pass(
            arrivals_s=tuple(at for at, _, _ in self.results),
            audio_after_s=tuple(audio_after),
            latencies_s=tuple(output.latency_s for output in done),
            rows=len(self.results),
            failed=len(self.results) - len(done),
            counters=self.counters,
            texts_sha256=hashlib.sha256(repr(texts).encode("utf-8", "backslashreplace")).hexdigest(),
        )

    def score(self, work: Work) -> dict[str, Any]:
        """The errors of all rows (`Scorer.as_dict`)."""
        scorer = Scorer()
        for _, row, output in self.results:
            language = getattr(row, "language", None) or output.language
            scorer.add(work.reference(row), output.text if output.ok else None, language)
        return scorer.as_dict()


def one_pass(engine: Engine, work: Work, watch: Watch) -> Timed:
    """Transcribe the list once. A result's row is made and written, to nowhere, as a run would."""
    timed, counters = Timed(), engine.executor.counters
    extras = RowExtras(nbest=work.options.n_best > 1)
    # Counters go on for as long as the engine lives.
    before = counters.snapshot()
    # Without a buffer, as a run hands every row to the system at once.
    with Path(os.devnull).open("wb", buffering=0) as nowhere:
        start = time.perf_counter()
        for row, output in engine.stream(work.rows, work.options, work.settings):
            with counters.time("output"):
                nowhere.write(encode_line(result_row(row.row, row.id, output, extras)))
            timed.results.append((time.perf_counter() - start, row, output))
            watch.result(row, output)
    timed.counters = counters.snapshot().since(before)
    return timed
