"""Fleet: several engines on a Ray cluster, in the place of one Engine."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

from oasr.config import EngineConfig
from oasr.errors import LaunchError, OasrError, OptionsError, RowError
from oasr.launch.cluster import connect
from oasr.launch.desk import Desk
from oasr.launch.facts import EngineFacts
from oasr.launch.feeder import Feeder, Windows
from oasr.launch.host import Result, Row
from oasr.launch.plan import LaunchPlan, machines_of, place
from oasr.types import DecodingOptions

TRIES = 3
"""Times that Ray runs a window again whose engine's process died."""
# `stop` may only set a flag, so somebody has to look at it; a thread that hangs in Ray is left behind.
_POLL_S, _LEAVE_S = 0.2, 10.0


class Fleet:
    """Engines on a cluster: loaded when this is made, ready for one list, gone when it is closed.

    Offers what a run needs of an Engine: `config`, `device`, `dtype`, `sample_rate`, `strategy` (its name and
    whether it takes the options of the run), `stream`, `stop`, and use as a context.
    """

    def __init__(
        self,
        config: EngineConfig,
        options: DecodingOptions,
        plan: LaunchPlan,
        total: int | None = None,
    ) -> None:
        """Join the cluster, start the pool, and wait for its first engine.

        Args:
            config: of every engine.
            options: of the run.
            plan: which engines.
            total: rows of the list, when they are counted.

        Raises:
            OptionsError, CapabilityError, CheckpointError: as `Engine`.
            OptionsError: the cluster lacks what is asked for.
            LaunchError: the cluster cannot be reached, or its engines do not come up.
        """
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._feeder: Feeder | None = None
        self._stopping = self._told = False
        self._threads: list[threading.Thread] = []
        self._desk: Any = None
        self._ray: Any = connect(plan.address)
        try:
            self._placement = place(plan, config, machines_of(self._ray.nodes()))
            self.config = replace(config, workers=self._placement.workers, threads=self._placement.threads)
            self._windows = Windows.of(config.max_batch_size, self._placement.engines, total)
            self._desk = self._open_desk()
            self._watch(self._dataset(options))
            self.facts = self._first_facts()
        except BaseException:
            self.close()
            raise
        self.device, self.dtype = self._placement.where, self.facts.dtype
        self.sample_rate = self.facts.sample_rate
        self.strategy = SimpleNamespace(name=self.facts.family, validate_options=self._validate_options)

    def stream(
        self,
        rows: Iterable[Row],
        options: DecodingOptions | None = None,
        settings: Any = None,
        in_order: bool = False,
        partial: bool = False,
    ) -> Generator[Result, None, None]:
        """Transcribe `rows`, once; (row, result) pairs window by window as they finish, or in order.

        As `Engine.stream`, except that the parts of long recordings stay where they are until the whole is
        finished, whatever `partial` says.

        Raises:
            LaunchError: the engines failed again and again, or a window was lost.
        """
        if self._feeder is not None:
            raise OptionsError("a Fleet works through one list; make a new one")
        desk, get = self._desk, self._ray.get
        # Only now: a format may have asked for word times since the engines were loaded.
        get(desk.order.remote(pickle.dumps((options or DecodingOptions(), settings))))
        self._feeder = feeder = Feeder(
            rows,
            self._windows,
            lambda number, window: get(desk.hand_in.remote(number, window)),
            lambda: get(desk.complete.remote()),
        )
        self._threads.append(feeder.thread)
        written = 0
        for number, results in _in_order(self._results()) if in_order else self._results():
            yield from results
            # The caller comes back when it has written these, so no engine will need the window again.
            desk.forget.remote(number)
            feeder.returned()
            written += 1
        if feeder.error is not None:
            raise feeder.error
        # After a stop, windows that no engine has begun do not come back.
        if written < feeder.windows and not self._stopping:
            raise LaunchError(
                f"{feeder.windows - written} of {feeder.windows} windows of the list did not come back from "
                "the cluster; --resume works on what is missing"
            )

    def stop(self) -> None:
        """Let `stream` end with what the engines are computing; only sets a flag, as `Engine.stop`."""
        self._stopping = True

    def close(self) -> None:
        """Give the engines up and leave the cluster. Safe to call twice."""
        if self._feeder is not None:
            self._feeder.stop()
        if self._ray is None:
            return
        self._ray, ray = None, self._ray
        if self._desk is not None:
            # Whoever waits for the Desk learns that it is gone: threads must be out of Ray before it ends.
            ray.kill(self._desk)
        for thread in self._threads:
            thread.join(_LEAVE_S)
        ray.shutdown()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The pool ---------------------------------------------------------------------------------

    def _open_desk(self) -> Any:
        """The Desk, on the driver's machine: what it holds is the driver's."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        return self._ray.remote(Desk).options(num_cpus=0, scheduling_strategy=here).remote()

    def _dataset(self, options: DecodingOptions) -> Any:
        """The list as a dataset, mapped over the pool."""
        from ray.data import ActorPoolStrategy, read_datasource

        from oasr.launch.source import RowSource
        from oasr.launch.worker import EngineActor, Work

        at, windows = self._placement, self._windows
        config = replace(self.config, device=at.device)
        # No processor for the task that hands on windows: the engines may have taken all of them.
        source = read_datasource(RowSource(self._desk), num_cpus=0, override_num_blocks=1)
        return source.map_batches(
            EngineActor,
            fn_constructor_args=(Work(self._desk, config, options, str(Path.cwd()), at.engines),),
            # One row of this table is a whole window.
            batch_size=1,
            batch_format="pyarrow",
            compute=ActorPoolStrategy(
                size=at.engines,
                max_tasks_in_flight_per_actor=windows.at_once,
                max_concurrent_calls_per_actor=windows.at_once,
                # Without it Ray Data puts a lock around an actor, and lets in one call at a time.
                enable_true_multi_threading=True,
            ),
            num_cpus=at.cpus,
            num_gpus=at.gpus or None,
            # Engines start anew without limit: what ends a run is a window that has failed too often.
            max_restarts=-1,
            max_task_retries=TRIES,
        )

    def _watch(self, dataset: Any) -> None:
        """Put what comes of the dataset, and what engines report, into the inbox.

        On threads: a signal reaches the main thread at once only where that waits in Python.
        """
        for work in (self._collect, self._read_reports):
            thread = threading.Thread(target=work, args=(dataset,), name=f"oasr{work.__name__}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _collect(self, dataset: Any) -> None:
        try:
            # With a prefetch, each window would be held back until the next one is there.
            for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
                for row in batch.to_pylist():
                    self._inbox.put((row["number"], pickle.loads(row["results"])))
            self._inbox.put(None)
        except BaseException as error:
            self._inbox.put(error)

    def _read_reports(self, dataset: Any) -> None:
        try:
            for place in count():
                self._inbox.put(self._ray.get(self._desk.read_report.remote(place)))
        except Exception:  # the Desk is gone, and with it whom this was for
            return

    # What comes back --------------------------------------------------------------------------

    def _take(self) -> Any:
        """The next thing in the inbox; passes on a stop while it waits."""
        while True:
            if self._stopping and not self._told:
                self._told = True
                self._desk.stop.remote()
            try:
                return self._inbox.get(timeout=_POLL_S)
            except queue.Empty:
                continue

    def _first_facts(self) -> EngineFacts:
        while not isinstance(found := self._take(), EngineFacts):
            if isinstance(found, BaseException):
                raise _readable(found, "no engine could be loaded on the Ray cluster")
        return found

    def _results(self) -> Iterator[tuple[int, list[Result]]]:
        """(window, its results) as they come."""
        trouble: OasrError | None = None
        while (found := self._take()) is not None:
            if isinstance(found, OasrError):
                trouble = found  # of one engine; Ray tries again, and may fail for good
            elif isinstance(found, BaseException):
                what = f"the engines on the Ray cluster failed, in {TRIES} more tries too"
                raise _readable(trouble or found, what)
            elif isinstance(found, tuple):
                yield found  # what else comes are facts of further engines, which have loaded the same

    def _validate_options(self, options: DecodingOptions) -> None:
        """RequestError when no row could be decoded with the run's options."""
        refusal: RowError | None = self.facts.refusals[options.word_timestamps]
        if refusal is not None:
            raise refusal


def _in_order(windows: Iterator[tuple[int, list[Result]]]) -> Iterator[tuple[int, list[Result]]]:
    """The same windows by number; each waits for those before it."""
    waiting: dict[int, list[Result]] = {}
    due = 0
    for number, results in windows:
        waiting[number] = results
        while due in waiting:
            yield due, waiting.pop(due)
            due += 1
    # A stop leaves gaps; what was finished behind them comes out all the same.
    yield from sorted(waiting.items())


def _readable(error: BaseException, what: str) -> OasrError:
    """Why a run on Ray ended: what an engine said of itself, else `what`, and what Ray says, in a line."""
    # A RowError is an error that nobody foresaw, put into words (`worker._described`): it lacks what to do.
    if isinstance(error, OasrError) and not isinstance(error, RowError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[0] if lines else "no reason given"
    if not isinstance(error, RowError):
        reason = f"{type(error).__name__}: {reason}"
    return LaunchError(f"{what}: {reason}. What is written stays; --resume goes on from there")
