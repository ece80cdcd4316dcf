"""`oasr transcribe --dry-run`: what the list holds, what would fail, and how long it would take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
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


@dataclass(slots=True)
class Survey:
    """What the headers say.

    Attributes:
        rows: rows looked at.
        seconds: lengths that are known.
        unknown: good rows whose length their header does not tell.
        failures: a line for each row that would fail.
        good: the rows that may be a sample, with their seconds.
    """

    rows: int = 0
    seconds: list[float] = field(default_factory=list)
    unknown: int = 0
    containers: Counter[str] = field(default_factory=Counter)
    rates: Counter[str] = field(default_factory=Counter)
    channels: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    good: list[tuple[Utterance, float]] = field(default_factory=list)


def do(job: Job) -> int:
    """Look, estimate, print; the exit code. Nothing is written.

    Raises:
        OasrError: the run could not start.
    """
    # Nothing is written, so that a signal may end it anywhere: there is no `on_stop`.
    with StopSwitch():
        job, writers, inputs = prepare(job)
        inputs.check_split_ids(all_rows=job.run.channel == "split")
        _check_folder(job)
        with start_engine(job) as engine:
            job = formats.with_word_times(job, writers, engine)
            with console.busy("reading headers"):
                survey = look(job, inputs, engine)
            for line in (*_described(survey), *_estimate(job, survey, engine), *_kept(job)):
                console.result(line)
    if not survey.failures:
        return ExitCode.OK
    return ExitCode.PARTIAL if len(survey.failures) < survey.rows else ExitCode.BROKEN


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
            if row.command is not None and job.run.allow_pipes:
                # How much a command writes is known only when it has run.
                survey.unknown += 1
                continue
            found = probe(row, job.run.channel)
        except (RowError, OptionsError) as error:
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
            survey.good.append((row, found.duration_s))
    return survey


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
    failing = len(survey.failures)
    yield f"rows: {survey.rows} ({survey.rows - failing} can be read, {failing} would fail)"
    if survey.seconds:
        known = sorted(survey.seconds)
        yield (
            f"audio: {clock_time(sum(known))} ({sum(known) / 3600:.2f} h), "
            f"a row {known[0]:.1f} to {known[-1]:.1f} s, median {median(known):.1f} s"
        )
    if survey.unknown:
        yield f"length unknown before decoding: {survey.unknown} rows, which are not in the hours"
    counters = (("formats", survey.containers), ("rates", survey.rates), ("channels", survey.channels))
    for name, counter in counters:
        if counter:
            yield f"{name}: {', '.join(f'{value} ({count})' for value, count in counter.most_common())}"
    for text in survey.failures[:SHOWN_FAILURES]:
        yield f"would fail: {text}"
    if failing > SHOWN_FAILURES:
        yield f"would fail: {failing - SHOWN_FAILURES} more"


def _estimate(job: Job, survey: Survey, engine: Engine) -> Iterator[str]:
    """Transcribe a few rows, spread over the list, and scale their time by the hours of the list."""
    from oasr.audio.loader import LoaderSettings

    short = [(row, seconds) for row, seconds in survey.good if seconds <= LONG_S]
    if not short:
        yield "estimated time: none, since no row of up to two minutes can be read"
        return
    count = min(SAMPLE, len(short))
    sample = [short[index * len(short) // count] for index in range(count)]
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
