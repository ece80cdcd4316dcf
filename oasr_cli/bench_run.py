"""One `oasr bench` from its checked Job to its exit code: batch size after batch size, then the report."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.bench.watch import Row, Watch
from oasr.errors import OptionsError
from oasr.types import DecodingOptions, RequestOutput

from oasr_cli import bench_report, console, progress
from oasr_cli.console import ExitCode
from oasr_cli.run import check_model, open_list, reference_of, start_engine
from oasr_cli.settings import Job
from oasr_cli.signals import StopSwitch
from oasr_cli.tally import Tally

if TYPE_CHECKING:
    from oasr.bench.csv_log import CsvLog
    from oasr.bench.runs import Measured, Pass, Work
    from oasr.engine import Engine
    from oasr.manifest import InputList


@dataclass(frozen=True, slots=True)
class Plan:
    """How a job is measured and where the report goes.

    Attributes:
        batch_sizes: measured in this order, each with an engine of its own.
        repeat, warmup: passes over the list that count, and passes before them.
        csv, html: files for the report; None = none.
        as_json: the report itself on stdout instead of the table.
    """

    batch_sizes: tuple[int, ...]
    repeat: int
    warmup: int
    csv: str | None = None
    html: str | None = None
    as_json: bool = False

    def __post_init__(self) -> None:
        """Raise OptionsError for a count that measures nothing."""
        for name, least in (("repeat", 1), ("warmup", 0)):
            if getattr(self, name) < least:
                raise OptionsError(f"--{name}: expected an integer >= {least}, got {getattr(self, name)}")
        files = [Path(file).absolute() for file in (self.csv, self.html) if file is not None]
        if len(set(files)) < len(files):
            raise OptionsError(f"--csv and --html are both {self.csv}: the page would replace the lines")


def do(job: Job, plan: Plan) -> int:
    """Measure, report, and return the exit code; what can be found wrong early is found before that.

    Raises:
        OasrError: the run cannot start, or broke; what was measured until then is reported.
        Interrupted: a signal came while a model was loading, or a second one.
    """
    with StopSwitch() as stop:
        check_model(job.config.model)
        inputs = open_list(job)
        from oasr.bench import page
        from oasr.bench.csv_log import CsvLog

        if plan.html is not None:
            page.check(Path(plan.html))
        log = None if plan.csv is None else CsvLog(Path(plan.csv))
        return _Bench(job, plan, inputs, stop).to_the_end(log)


class _Bench:
    """The runs of one plan."""

    def __init__(self, job: Job, plan: Plan, inputs: InputList, stop: StopSwitch) -> None:
        self.job, self.plan, self.inputs, self.stop = job, plan, inputs, stop
        self.measured: list[Measured] = []
        self.failures: list[str] = []

    def to_the_end(self, log: CsvLog | None) -> int:
        """Every batch size; whatever ends the loop early, what was measured is reported."""
        try:
            for size in self.plan.batch_sizes:
                self._measure(size, log)
        finally:
            self.stop.on_stop = None
            if self.measured:
                self._show()
        if self.stop.signum is not None:
            return 128 + self.stop.signum
        return self._exit_code()

    def _measure(self, size: int, log: CsvLog | None) -> None:
        from oasr.bench.runs import measure

        if self.stop.thrown:
            return
        job = replace(self.job, config=replace(self.job.config, max_batch_size=size))
        follower = _Follower(job, self.inputs.count(), self.stop)
        try:
            done = measure(lambda: start_engine(job), self._work(), follower)
        finally:
            follower.close()
            # Until the next engine is there, a signal has nothing to finish.
            self.stop.on_stop = None
        if done is None:
            return  # stopped before one pass was whole
        self.measured.append(done)
        # As a rule the same rows fail at every batch size: they are shown once.
        self.failures = self.failures or follower.tally.failures
        if log is not None:
            # At once: a later batch size may run out of memory.
            report = self._report()
            log.append(report, report["runs"][-1])

    def _work(self) -> Work:
        from oasr.audio.loader import LoaderSettings
        from oasr.bench.runs import Work

        run = self.job.run

        def reference(row: Row) -> str | None:
            return reference_of(row.row, getattr(row, "text", None), run.reference_field)

        settings = LoaderSettings(
            sample_rate=16000,  # the model's takes its place
            workers=self.job.config.workers,
            channel=run.channel,
            allow_pipes=run.allow_pipes,
        )
        plan = self.plan
        return Work(self.inputs, self.job.options, settings, reference, plan.repeat, plan.warmup)

    def _report(self) -> dict[str, Any]:
        from oasr.bench import report

        plan, config = self.plan, self.job.config
        whole = len(self.measured) == len(plan.batch_sizes)
        context = {
            "command": shlex.join(["oasr", *sys.argv[1:]]),
            "complete": whole and all(len(one.passes) == plan.repeat for one in self.measured),
            "list": {
                "inputs": list(self.job.run.inputs),
                "sha256": self.inputs.sha256(),
                "rows": self.inputs.count(),
            },
            "settings": {
                "repeat": plan.repeat,
                "warmup": plan.warmup,
                "batch_seconds": config.max_batch_seconds,
                "max_new_tokens": config.max_new_tokens,
                "vad": config.vad,
                "max_window_s": config.max_window_s,
                "channel": self.job.run.channel,
                "decode_options": dict(config.decode_options),
                "decoding": _changed(self.job.options),
            },
        }
        return report.build(self.measured, context)

    def _show(self) -> None:
        report = self._report()
        if self.plan.as_json:
            console.result_json(report)
        else:
            bench_report.show(report)
        for text in self.failures:
            console.note(f"  failed: {text}")
        # Last: what took an hour must not be lost to a disk that is full.
        if self.plan.html is not None:
            from oasr.bench import page

            page.write(Path(self.plan.html), report)
        for where in filter(None, (self.plan.html, self.plan.csv)):
            console.note(f"report: {where}")

    def _exit_code(self) -> int:
        failed = sum(one.failed for run in self.measured for one in run.passes)
        done = sum(one.rows for run in self.measured for one in run.passes) - failed
        if failed == 0:
            return ExitCode.OK
        return ExitCode.PARTIAL if done else ExitCode.BROKEN


def _changed(options: DecodingOptions) -> dict[str, Any]:
    """The decoding options that are not as they are by default."""
    usual = DecodingOptions()
    given = {f.name: getattr(options, f.name) for f in fields(options)}
    return {name: value for name, value in given.items() if value != getattr(usual, name)}


class _Follower(Watch):
    """Shows each pass as `oasr transcribe` shows a run, and hands signals to the engine."""

    def __init__(self, job: Job, rows: int, stop: StopSwitch) -> None:
        self.job, self.rows, self.stop = job, rows, stop
        self.tally, self.display, self.name = Tally(), progress.Progress(), ""

    @property
    def stopped(self) -> bool:
        return self.stop.thrown

    def begin(self, engine: Engine, name: str) -> None:
        self.name, self.tally = name, Tally(total=self.rows)
        self.display = progress.choose(self.job.run.progress, self.tally)

        def on_stop() -> None:
            engine.stop()
            console.note_at_once("stopping; the pass that is under way does not count")

        self.stop.on_stop = on_stop
        self.tally.start()
        self.display.start()

    def result(self, row: Row, output: RequestOutput) -> None:
        self.tally.count(row, output)
        self.display.update()

    def end(self, done: Pass) -> None:
        self.close()
        console.note(
            f"batch size {self.job.config.max_batch_size} · {self.name} · rows: {done.rows} in "
            f"{done.wall_s:.2f} s · {done.audio_s / done.wall_s:.2f}× real time"
        )

    def close(self) -> None:
        """Take the display away."""
        self.display.stop()
