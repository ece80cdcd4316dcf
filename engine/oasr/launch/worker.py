"""One member of the pool: what Ray Data makes an actor of, with an engine in it."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oasr.config import EngineConfig
from oasr.errors import LaunchError, OasrError, RowError
from oasr.launch.facts import EngineFacts
from oasr.launch.host import EngineHost, Result, Row
from oasr.types import DecodingOptions, Utterance

BROKEN_ENGINE = 70
"""Exit status of a process whose engine cannot go on; any other than 0 would do."""
MOST_DEAD = 3
"""Processes of a run that may die while they load their engine."""
_DIED = (
    "{} engine processes ended while they were loading the model, without a word of why; most often the "
    "machine has too little memory for them (the kernel's log tells): take fewer engines or a smaller model"
)


@dataclass(frozen=True, slots=True)
class Work:
    """What a member of the pool needs to begin.

    Attributes:
        desk: handle of the Desk.
        config: of the engine, device and threads settled.
        options: of the run, as far as they are known before an engine is there.
        directory: where relative paths of the list and the model begin: the driver's.
        engines: members of the pool.
    """

    desk: Any
    config: EngineConfig
    options: DecodingOptions
    directory: str
    engines: int


class EngineActor:
    """Callable of `Dataset.map_batches`: a window of rows in, the same window's results out.

    Ray Data makes one an actor and calls it from several threads at once, so that its engine sees more rows
    than those of one window. A window's results leave together: what Ray runs again after a failure is a
    window of which nothing has been handed out.
    """

    def __init__(self, work: Work) -> None:
        """Load the engine, say so, and wait for what is to be done.

        Raises:
            OasrError: the engine cannot be loaded, or others died while they loaded; the Desk knows.
        """
        import ray

        self._work, self._ray = work, ray
        # Before anything that takes memory. Ray starts what dies anew without end, and the run would wait.
        if ray.get(work.desk.begin.remote()) > work.engines + MOST_DEAD:
            self._report(error := LaunchError(_DIED.format(MOST_DEAD + 1)))
            raise error
        from oasr.engine import Engine

        here = Path(work.directory)
        # Where the folder is not mounted, rows get absolute paths, which may still be reachable.
        self._lost = not here.is_dir()
        if not self._lost:
            os.chdir(here)
        try:
            engine = Engine(work.config)
        except Exception as error:
            # Told first: Ray would give the driver an error of its own, around a remote traceback.
            self._report(error if isinstance(error, OasrError) else _described(error))
            raise
        self._report(EngineFacts.of(engine, work.options))
        options, settings = pickle.loads(ray.get(work.desk.orders.remote()))
        self._host = EngineHost(engine, options, settings, self._break)
        threading.Thread(target=self._wait_for_stop, name="oasr-stop", daemon=True).start()

    def __call__(self, batch: Any) -> dict[str, list[Any]]:
        """Transcribe the one window of `batch`, a table with the columns `number` and `rows`."""
        ((number,), (blob,)) = (batch[name].to_pylist() for name in ("number", "rows"))
        results = self._host.results(self._found(pickle.loads(blob)))
        return {"number": [number], "results": [pickle.dumps([self._returned(one) for one in results])]}

    def _found(self, rows: Sequence[Row]) -> list[Row]:
        """The rows with paths that hold in this process."""
        if not self._lost:
            return list(rows)
        base = Path(self._work.directory)
        return [
            replace(row, audio=str(base / row.audio)) if isinstance(row, Utterance) and row.audio else row
            for row in rows
        ]

    def _returned(self, result: Result) -> Result:
        """A result without the samples that its row may carry: nobody reads them any more."""
        row, output = result
        return (replace(row, samples=None) if isinstance(row, Utterance) else row), output

    def _wait_for_stop(self) -> None:
        self._ray.get(self._work.desk.stopped.remote())
        self._host.stop()

    def _report(self, what: Any) -> None:
        self._ray.get(self._work.desk.report.remote(what))

    def _break(self, error: BaseException) -> None:
        """End this process: a device that failed stays unusable in it. Ray starts another, and retries."""
        try:
            self._report(error if isinstance(error, OasrError) else _described(error))
        finally:
            # Not sys.exit, which ends no more than the thread that calls it, the engine's.
            os._exit(BROKEN_ENGINE)


def _described(error: BaseException) -> RowError:
    """An error that nobody foresaw, in words: its own type may not exist on the driver."""
    return RowError(f"{type(error).__name__}: {error}")
