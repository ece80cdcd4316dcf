"""Rows on their way into the engine: options checked, windows made into requests, early ends collected."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oasr.audio.cutting import AudioWindow
from oasr.audio.pieces import Piece
from oasr.audio.row_queue import LoadedRow
from oasr.audio.segment import holds_no_speech
from oasr.audio.windows import Planning
from oasr.errors import OptionsError, RequestError, RowError
from oasr.executor.offline import OfflineExecutor
from oasr.executor.rescue import Outcome
from oasr.executor.results import Ended, ResultAssembler, failure
from oasr.types import DecodingOptions, Hypothesis, Request, RequestOutput, RowFailure, Utterance

Keyed = tuple[int, RequestOutput]
"""Admission number and result of a row."""


def row_options(base: DecodingOptions, row: Utterance) -> DecodingOptions:
    """The run's options with what the row itself says about language, task and prompt.

    Raises:
        OptionsError: the row names a value that no model could take.
    """
    own = {
        name: value for name in ("language", "task", "prompt") if (value := getattr(row, name)) is not None
    }
    return replace(base, **own) if own else base


def planning(vad: str, wanted_s: float | None, model_limit_s: float | None) -> Planning:
    """How the recordings of an engine become windows.

    Args:
        vad: as in EngineConfig.
        wanted_s: EngineConfig.max_window_s.
        model_limit_s: the longest window of the model; None = any.

    Raises:
        OptionsError: a longer window than the model takes.
    """
    if wanted_s is not None and model_limit_s is not None and wanted_s > model_limit_s:
        raise OptionsError(
            f"max_window_s: expected at most {model_limit_s:g} s, which this model takes at once, "
            f"got {wanted_s:g} s"
        )
    return Planning(vad, model_limit_s if wanted_s is None else wanted_s)


@dataclass(slots=True)
class Arrival:
    """A row whose windows are coming in: what they share, and how many have come."""

    key: int
    row: Utterance
    options: DecodingOptions
    windows: int = 0

    def requests(self, windows: Sequence[AudioWindow], sample_rate: int) -> list[Request]:
        """The next windows as requests; times are seconds of the recording, so the row's offset is added."""
        # Windows are numbered through the whole recording, whatever pieces they come in.
        now, offset, first = time.perf_counter(), self.row.offset, self.windows
        self.windows += len(windows)
        return [
            Request(
                self.row.id,
                window.samples,
                sample_rate,
                options=self.options,
                key=self.key,
                window=number,
                start_s=offset + window.start / sample_rate,
                cut_s=None if window.cut is None else offset + window.cut / sample_rate,
                admitted_at=now,
            )
            for number, window in enumerate(windows, first)
        ]


class Admission:
    """Takes what the loader has read and queues it; keeps the results of rows that end right here."""

    def __init__(self, executor: OfflineExecutor, results: ResultAssembler) -> None:
        """The executor gets the requests, `results` learns what to expect."""
        self._executor, self._results = executor, results
        self._model, self._strategy = executor.model, executor.strategy
        self._arrivals: dict[tuple[int, int], Arrival] = {}
        self._refused: list[tuple[int, str, RowError, float]] = []
        self._silent: list[Outcome] = []
        self._ended: list[Keyed] = []
        self._count = 0

    @property
    def count(self) -> int:
        """Rows admitted so far: the number that the next one gets."""
        return self._count

    @property
    def early(self) -> int:
        """Results, or windows of silence, that wait to be collected."""
        return len(self._refused) + len(self._silent) + len(self._ended)

    def admit(self, loaded: LoadedRow, base: DecodingOptions) -> int:
        """Take in a row, or a piece of one, and return its number; a refused one becomes its result."""
        place = _place(loaded)
        # Taken out, and put back below only while more pieces are to come.
        arrival = self._arrivals.pop(place, None)
        if arrival is not None and loaded.failure is not None:
            self._end(arrival, Ended(arrival.windows, 0.0, error=_error(loaded.failure)))
        elif arrival is not None and loaded.piece is not None:
            self._take(arrival, loaded.piece)
        else:
            # None: the row was numbered and has its result already.
            arrival = self._begin(loaded, base)
            if arrival is None:
                return self._count - 1
        if loaded.piece is not None and loaded.piece.ended is None:
            self._arrivals[place] = arrival
        return arrival.key

    def wants(self, loaded: LoadedRow) -> bool:
        """False when the pieces that follow an admitted one are of no use, since its row was refused."""
        return loaded.piece is None or loaded.piece.ended is not None or _place(loaded) in self._arrivals

    def take_whole(self, row: Utterance, options: DecodingOptions, pieces: Sequence[Piece]) -> int:
        """Queue all pieces of a row whose options were checked; its number."""
        arrival = self._open(row, options)
        for piece in pieces:
            self._take(arrival, piece)
        return arrival.key

    def collect(self) -> tuple[list[Keyed], list[Outcome]]:
        """Results of rows that ended here, and outcomes of windows that hold no speech; each once."""
        refused, silent, ended = self._refused, self._silent, self._ended
        self._refused, self._silent, self._ended = [], [], []
        # Made now: a refused row's result, too, counts its time until it is handed out.
        failed = [(key, failure(name, error, since)) for key, name, error, since in refused]
        return failed + ended, silent

    def clear(self) -> None:
        """Forget what an abandoned list left behind."""
        self._arrivals.clear()
        self.collect()

    def _begin(self, loaded: LoadedRow, base: DecodingOptions) -> Arrival | None:
        """A row that has not been here before; None when it ends right here."""
        now, row, piece = time.perf_counter(), loaded.utterance, loaded.piece
        if row is None or piece is None:
            failed = loaded.failure
            error = RowError("the reader returned no audio") if failed is None else _error(failed)
            self._refused.append((self._next(), failed.id if failed else "", error, now))
            return None
        try:
            options = row_options(base, row)
            self._strategy.validate_options(options)
        except (RequestError, OptionsError) as refused:
            # A row may name a task or language that no model has: that fails the row, not the run.
            self._refused.append((self._next(), row.id, RequestError(str(refused)), now))
            return None
        arrival = self._open(row, options)
        self._take(arrival, piece)
        return arrival

    def _open(self, row: Utterance, options: DecodingOptions) -> Arrival:
        arrival = Arrival(self._next(), row, options)
        self._results.expect(arrival.key, row.id, time.perf_counter())
        return arrival

    def _take(self, arrival: Arrival, piece: Piece) -> None:
        """Queue the windows of a piece; digital silence is finished before it starts."""
        windows, ending = piece.windows, piece.ended
        if ending is not None and not windows and not arrival.windows:
            # Nobody speaks: an empty window gives the row its result.
            windows = (AudioWindow(0, np.zeros(0, np.float32)),)
        for request in arrival.requests(windows, self._model.frontend.sample_rate):
            if holds_no_speech(request.samples, request.sample_rate):
                language = self._model.stated_language(request.options)
                self._silent.append(Outcome(request, (Hypothesis((), 0.0, language=language),)))
            else:
                self._executor.add(request)
        if ending is not None:
            end_s = arrival.row.offset + ending.duration_s
            ended = Ended(arrival.windows, ending.duration_s, end_s, ending.warnings, ending.speech)
            self._end(arrival, ended)

    def _end(self, arrival: Arrival, ended: Ended) -> None:
        output = self._results.end(arrival.key, ended)
        if output is not None:
            self._ended.append((arrival.key, output))

    def _next(self) -> int:
        self._count += 1
        return self._count - 1


def _place(loaded: LoadedRow) -> tuple[int, int]:
    """What tells the pieces of one row from those of others."""
    return loaded.number, loaded.utterance.part if loaded.utterance is not None else 0


def _error(failed: RowFailure) -> RowError:
    error = RowError(failed.message)
    error.stage = failed.stage
    return error
