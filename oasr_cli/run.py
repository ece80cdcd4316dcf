"""One `oasr transcribe` from its checked Job to its exit code: the loop, the summary, the signals."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.errors import OptionsError, RowError
from oasr.types import RequestOutput

from oasr_cli import console, formats, progress, resume, sinks
from oasr_cli.console import ExitCode
from oasr_cli.launching import load_fleet
from oasr_cli.settings import Job, flag_names
from oasr_cli.signals import StopSwitch
from oasr_cli.sink import Row, Sink
from oasr_cli.tally import Tally

if TYPE_CHECKING:
    from oasr.config import EngineConfig
    from oasr.engine import Engine
    from oasr.launch.fleet import Fleet
    from oasr.manifest import InputList
    from oasr.output.writers import Writer
    from oasr.scoring.wer import Scorer


def do(job: Job) -> int:
    """Do the job and return the exit code; what can be found wrong early is found before the model loads.

    Raises:
        OasrError: the run cannot start, or broke.
        Interrupted: a signal came before there was anything to finish, or a second one.
    """
    with StopSwitch() as stop:
        job, writers, inputs = prepare(job)
        # The sink first: its folder is locked before the model loads, and let go when the engine is gone.
        with sinks.choose(job, writers, inputs) as sink, start_engine(job, inputs.count()) as engine:
            job = formats.with_word_times(job, writers, engine)
            return Run(job, inputs, sink, engine).to_the_end(stop)


def prepare(job: Job) -> tuple[Job, dict[str, Writer], InputList]:
    """The job with the formats of a run that it resumes, their writers, and the list; all of it checked.

    Raises:
        OasrError: the run could not start.
    """
    check_model(job.config.model)
    # Before the list is read, which takes time, and again below: a resumed run brings formats along.
    formats.check_speech(formats.writers_for(job.run), job.config.vad)
    inputs = open_list(job)
    job = resume.go_on(job, inputs)
    writers = formats.writers_for(job.run)
    formats.check_speech(writers, job.config.vad)
    formats.check_names(writers, inputs)
    inputs.check_split_ids(all_rows=job.run.channel == "split")
    sinks.check_stdout(job.run, inputs)
    return job, writers, inputs


def open_list(job: Job) -> InputList:
    """The rows, with what makes the whole list unusable found."""
    from oasr.manifest import InputOptions, open_inputs

    with flag_names():
        options = InputOptions(job.run.audio_root, job.run.allow_pipes, job.run.shard)
    inputs = open_inputs(job.run.inputs, options)
    inputs.check_ids()
    return inputs


def check_model(name: str) -> None:
    """Refuse what can be no model: a typing error must not cost the time that loading takes to find it.

    Raises:
        OptionsError: neither a catalog name, nor a path that exists, nor shaped like a hub id.
    """
    from oasr.checkpoints import catalog

    # An empty name as a path is the current folder, which nobody meant.
    if catalog.find(name) is None and "/" not in name and not (name and Path(name).exists()):
        known = ", ".join(entry.name for entry in catalog.entries())
        raise OptionsError(
            f"--model: {name!r} is no folder, file, hub id (owner/name) or catalog name; known: {known}"
        )


def load_engine(config: EngineConfig) -> Engine:
    """The engine; the one place where the command line gets it from."""
    from oasr.engine import Engine

    return Engine(config)


def start_engine(job: Job, rows: int | None = None) -> Engine | Fleet:
    """The engine or engines, loaded, and able to do what the flags ask of every row; `rows` are to come."""
    with console.busy(f"loading {job.config.model}"), flag_names(job.config.decode_options):
        engine = load_engine(job.config) if job.launch.launcher == "local" else load_fleet(job, rows)
    try:
        engine.strategy.validate_options(job.options)
    except RowError as error:
        raise OptionsError(f"{error} (asked for on the command line, for all rows)") from error
    return engine


def reference_of(keys: Mapping[str, Any], text: str | None, field: str | None) -> str | None:
    """The reference of a row: what --reference-field names, else its text."""
    from oasr.manifest.dialect import TEXT_KEYS

    if field is not None:
        text = keys.get(field)
    elif text is None:
        text = next((keys[key] for key in TEXT_KEYS if keys.get(key) is not None), None)
    return text if isinstance(text, str) else None


class Run:
    """The loop over the rows of one list."""

    def __init__(self, job: Job, inputs: InputList, sink: Sink, engine: Engine | Fleet) -> None:
        """Everything is open; nothing is written yet."""
        self.job, self.inputs, self.sink, self.engine = job, inputs, sink, engine
        self.tally = Tally(total=inputs.count())
        self.scorer = _scorer() if job.run.wer else None
        self._failed_before: set[str] = set()
        self._untimed_before = 0

    def to_the_end(self, stop: StopSwitch) -> int:
        """Transcribe, write, sum up; the exit code."""
        engine = self.engine
        console.note(
            f"model {engine.config.model} · {engine.strategy.name} · {engine.device} · {engine.dtype}"
        )
        for record in self.sink.begin(partial(resume.about, self.job, self.inputs, engine)):
            self._recall(record)
        if self._untimed_before:
            rows = "row" if self._untimed_before == 1 else "rows"
            console.note(f"{self._untimed_before} {rows} of the earlier run without word times")
        display = progress.choose(self.job.run.progress, self.tally)
        stop.on_stop = self._on_stop
        self.tally.start()
        display.start()
        try:
            self._work(stop, display)
        finally:
            display.stop()
            self.tally.stop()
        # Not reached after an error: then rows stay in the order in which they finished, for --resume.
        self.sink.finish()
        self.sink.ended(self.tally.counts, complete=not self.tally.left)
        self._sum_up(stop)
        return self._exit_code(stop)

    def _work(self, stop: StopSwitch, display: progress.Progress) -> None:
        from oasr.audio.loader import LoaderSettings

        config, run = self.engine.config, self.job.run
        settings = LoaderSettings(
            sample_rate=self.engine.sample_rate,
            workers=config.workers,
            channel=run.channel,
            allow_pipes=run.allow_pipes,
        )
        stream = self.engine.stream(
            self._rows(stop), self.job.options, settings, in_order=self.sink.in_order, partial=True
        )
        # Closed when writing fails too: the readers are not to go on for nobody.
        with closing(stream):
            for row, output in stream:
                self._take(row, output, display)

    def _take(self, row: Row, output: RequestOutput, display: progress.Progress) -> None:
        """Write and count one result, or the part of one."""
        if not output.finished:
            with display.aside() if self.sink.on_terminal else nullcontext():
                self.sink.part(row, output)
            self.tally.part(row, output)
            display.update()
            return
        # Asked first: what the earlier run wrote is scored and counted as that run left it.
        if self.sink.kept(row):
            self.tally.keep(row, output, failed=row.id in self._failed_before)
        else:
            record = self._record(row, output)
            with display.aside() if self.sink.on_terminal else nullcontext():
                self.sink.write(row, record, output)
            # Counted when it is written: run.json must not claim a row that a kill could take.
            self.tally.count(row, output)
        self.sink.counted(self.tally.counts)
        display.update()

    def _rows(self, stop: StopSwitch) -> Iterator[Row]:
        """The rows that no earlier run wrote; runs on the reader threads, one at a time."""
        for row in self.inputs:
            # Nobody waits for a thread that is inside the list: at a stop it has to leave by itself.
            if stop.thrown:
                return
            if written := self.sink.written(row):
                failed = len(self._failed_before.intersection(written))
                self.tally.skip(len(written) - failed, failed)
            else:
                yield row

    def _record(self, row: Row, output: RequestOutput) -> dict[str, Any]:
        """The result row, scored when that was asked for."""
        from oasr.output.rows import RowExtras, result_row

        scores: Mapping[str, Any] = {}
        if self.scorer is not None:
            reference = self._reference(row.row, getattr(row, "text", None))
            language = getattr(row, "language", None) or output.language
            score = self.scorer.add(reference, output.text if output.ok else None, language)
            scores = score.as_row() if score is not None and output.ok else {}
        # A family may return several candidates of every row by an option of its own.
        several = max(self.job.options.n_best, len(output.nbest_texts)) > 1
        extras = RowExtras(nbest=several, scores=scores)
        return result_row(row.row, row.id, output, extras)

    def _recall(self, record: Mapping[str, Any]) -> None:
        """Take in a record that an earlier run wrote."""
        from oasr.output.rows import row_id

        if self.job.options.word_timestamps and record.get("pred_text") and "words" not in record:
            self._untimed_before += 1
        if "error" in record and (name := row_id(record)) is not None:
            self._failed_before.add(name)
        if self.scorer is not None:
            self.scorer.add(self._reference(record), record.get("pred_text"), record.get("language"))

    def _reference(self, keys: Mapping[str, Any], text: str | None = None) -> str | None:
        return reference_of(keys, text, self.job.run.reference_field)

    # The end ----------------------------------------------------------------------------------

    def _on_stop(self) -> None:
        self.engine.stop()
        console.note_at_once("finishing the batch in flight; once more stops now")

    def _sum_up(self, stop: StopSwitch) -> None:
        for line in self.tally.summary():
            console.note(line)
        if self.scorer is not None:
            for line in self.scorer.lines():
                console.note(line)
        if self.sink.where:
            console.note(f"results: {self.sink.where}")
        if stop.signum is not None:
            left = f"{self.tally.left} rows are left" if self.tally.left else "no row is left"
            hint = "; --resume goes on from here" if self.job.run.output_dir and self.tally.left else ""
            console.note(f"stopped by {signal.Signals(stop.signum).name}: {left}{hint}")

    def _exit_code(self, stop: StopSwitch) -> int:
        if stop.signum is not None:
            return 128 + stop.signum
        if self.tally.all_failed == 0:
            return ExitCode.OK
        return ExitCode.PARTIAL if self.tally.all_ok else ExitCode.BROKEN


def _scorer() -> Scorer:
    from oasr.scoring.wer import Scorer

    return Scorer()
