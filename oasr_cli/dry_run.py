"""`oasr transcribe --dry-run`: what the list holds, what would fail, and how long it would take."""

from __future__ import annotations

import os
import stat
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from oasr.errors import OptionsError, OutputError, RowError
from oasr.types import RowFailure, Utterance

from oasr_cli import console, formats
from oasr_cli.console import ExitCode, printable
from oasr_cli.run import prepare, start_engine
from oasr_cli.settings import Job
from oasr_cli.signals import StopSwitch
from oasr_cli.tally import SHOWN_FAILURES, clock_time

if TYPE_CHECKING:
    from oasr.engine import Engine
    from oasr.manifest import InputList

SAMPLE = 20
"""Rows that are transcribed for the estimate, spread over the list."""
LONG_S = 120.0
"""A recording above this is no sample: one of some hours would take as long as the run it stands for."""


class Spread:
    """Some rows of a list, evenly spread over it; the list itself, which may have millions, is never held."""

    def __init__(self) -> None:
        """No row."""
        self._rows: list[tuple[Utterance, float]] = []
        self._seen, self._step = 0, 1

    def add(self, row: Utterance, seconds: float) -> None:
        """The next row of the list and its length."""
        if self._seen % self._step == 0:
            self._rows.append((row, seconds))
            if len(self._rows) == 4 * SAMPLE:
                del self._rows[1::2]
                self._step *= 2
        self._seen += 1

    def chosen(self) -> list[tuple[Utterance, float]]:
        """At most SAMPLE of them."""
        count = min(SAMPLE, len(self._rows))
        return [self._rows[index * len(self._rows) // count] for index in range(count)]


@dataclass(slots=True)
class Survey:
    """What the headers say. Of a row no more than its length is kept, for their median.

    Attributes:
        rows: rows looked at.
        seconds: lengths that are known.
        unknown: good rows whose length is not known before they are decoded.
        failing: rows that would fail.
        failures: a line for each of the first ones.
        short: the rows that may be a sample.
    """

    rows: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))
    unknown: int = 0
    containers: Counter[str] = field(default_factory=Counter)
    rates: Counter[str] = field(default_factory=Counter)
    channels: Counter[str] = field(default_factory=Counter)
    failing: int = 0
    failures: list[str] = field(default_factory=list)
    short: Spread = field(default_factory=Spread)


def do(job: Job) -> int:
    """Look, estimate, print; the exit code. Nothing is written.

    Raises:
        OasrError: the run could not start.
    """
    # Nothing is written, so that a signal may end it anywhere: there is no `on_stop`.
    with StopSwitch():
        job, writers, inputs = prepare(job)
        _check_folder(job)
        with start_engine(job) as engine:
            job = formats.with_word_times(job, writers, engine)
            with console.busy("reading headers"):
                survey = look(job, inputs, engine)
            for line in (*_described(survey), *_estimate(job, survey, engine), *_kept(job)):
                console.result(line)
    if not survey.failing:
        return ExitCode.OK
    return ExitCode.PARTIAL if survey.failing < survey.rows else ExitCode.BROKEN


def look(job: Job, inputs: InputList, engine: Engine) -> Survey:
    """Read the header of every recording, and check what its row asks of the model."""
    from oasr.audio.probe import probe

    survey = Survey()
    for row in inputs:
        survey.rows += 1
        try:
            if isinstance(row, RowFailure):
                raise RowError(row.message)
            _check_options(job, row, engine)
            if (row.command is not None and job.run.allow_pipes) or _is_pipe(row.audio):
                # How much a command writes is known only when it has run, and a pipe gives what it has once.
                survey.unknown += 1
                continue
            found = probe(row, job.run.channel)
        except (RowError, OptionsError) as error:
            survey.failing += 1
            if len(survey.failures) == SHOWN_FAILURES:
                continue
            # A row that failed in the list names its place in its message already.
            where = row.origin or row.id
            text = str(error)
            survey.failures.append(printable(text if where in text else f"{where} (id {row.id!r}): {text}"))
            continue
        survey.containers[found.container] += 1
        survey.rates[f"{found.sample_rate} Hz"] += 1
        survey.channels[str(found.channels)] += 1
        if found.duration_s is None:
            survey.unknown += 1
        else:
            survey.seconds.append(found.duration_s)
            if found.duration_s <= LONG_S:
                survey.short.add(row, found.duration_s)
    return survey


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 - "" is a Path, too
    except (OSError, ValueError):
        return False  # the reader says why


def _check_options(job: Job, row: Utterance, engine: Engine) -> None:
    from oasr.admission import row_options

    engine.strategy.validate_options(row_options(job.options, row))


def _check_folder(job: Job) -> None:
    from oasr.output.folder_checks import check_folder

    if job.run.output_dir is None:
        return
    try:
        check_folder(Path(job.run.output_dir), resume=job.run.resume, overwrite=job.run.overwrite)
    except OutputError as error:
        raise OptionsError(f"--output-dir: {error}") from error


def _kept(job: Job) -> Iterator[str]:
    """How much of the work an earlier run has done, where this one goes on with it."""
    from oasr.output.results_file import RESULTS_NAME

    results = Path(job.run.output_dir or "") / RESULTS_NAME
    if not (job.run.resume and results.is_file()):
        return
    with results.open("rb") as lines:
        # A last line that a kill cut off is done again.
        count = sum(line.endswith(b"\n") and not line.isspace() for line in lines)
    unless = " unless they failed" if job.run.retry_failed else ""
    yield f"results of an earlier run: {count}, kept{unless}; the figures are those of the whole list"


def _described(survey: Survey) -> Iterator[str]:
    import numpy as np

    failing = survey.failing
    yield f"rows: {survey.rows} ({survey.rows - failing} can be read, {failing} would fail)"
    if survey.seconds:
        known = np.array(survey.seconds)
        yield (
            f"audio: {clock_time(known.sum())} ({known.sum() / 3600:.2f} h), "
            f"a row {known.min():.1f} to {known.max():.1f} s, median {np.median(known):.1f} s"
        )
    if survey.unknown:
        yield f"length unknown before decoding: {survey.unknown} rows, which are not in the hours"
    counters = (("formats", survey.containers), ("rates", survey.rates), ("channels", survey.channels))
    for name, counter in counters:
        if counter:
            yield f"{name}: {', '.join(f'{value} ({count})' for value, count in counter.most_common())}"
    for text in survey.failures:
        yield f"would fail: {text}"
    if failing > SHOWN_FAILURES:
        yield f"would fail: {failing - SHOWN_FAILURES} more"


def _estimate(job: Job, survey: Survey, engine: Engine) -> Iterator[str]:
    """Transcribe a few rows, spread over the list, and scale their time by the hours of the list."""
    from oasr.audio.loader import LoaderSettings

    sample = survey.short.chosen()
    if not sample:
        yield "estimated time: none, since no row of up to two minutes can be read"
        return
    count = len(sample)
    settings = LoaderSettings(engine.sample_rate, engine.config.workers, channel=job.run.channel)
    with console.busy(f"transcribing {count} rows"):
        # The first row pays for what is set up once; it is no part of the measurement.
        _run_through(engine, [sample[0][0]], job, settings)
        began = time.perf_counter()
        _run_through(engine, [row for row, _ in sample], job, settings)
        wall = time.perf_counter() - began
    heard = sum(seconds for _, seconds in sample)
    whole = sum(survey.seconds) * wall / heard if heard else 0.0
    yield (
        f"estimated time: {clock_time(whole)} at {heard / wall:.1f}× real time "
        f"({count} {'row' if count == 1 else 'rows'}, {heard:.1f} s, in {wall:.1f} s)"
    )


def _run_through(engine: Engine, rows: list[Utterance], job: Job, settings: object) -> None:
    for _ in engine.stream(rows, job.options, settings):  # type: ignore[arg-type]
        pass
