"""The offline executor: the loop from waiting requests to finished hypotheses.

One `step` is one tick. An incremental family alternates between prefilling a micro-batch, while
decode slots are free, and advancing the pending rows within a StepBudget. A one-shot family
launches batch N+1 and then collects batch N, whose read-back ran behind that forward. Either way
the next micro-batch is collated on a thread of its own while the present one computes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from oasr.decode.strategy import DecodeStrategy, PendingDecode
from oasr.executor.batching import BatchLimits, LookaheadBuffer, MicroBatch
from oasr.executor.budget import StepBudget
from oasr.executor.collate import Collated, Collator
from oasr.executor.counters import Counters
from oasr.executor.memory import MemoryRelease
from oasr.executor.rescue import Outcome, forget_frames, rescue
from oasr.models.interfaces import AsrModel, EncoderOutput
from oasr.types import Request

if TYPE_CHECKING:
    from oasr.config import EngineConfig

MAX_SKIPPED_ADMITS = 8
"""Ticks in a row that decoding may keep the encoder waiting, so that admission cannot starve."""


class OfflineExecutor:
    """Runs requests through encoder and decode family in micro-batches. Not thread-safe.

    Attributes:
        interactive: True while somebody waits for single ticks: a tick is then bounded in time, and
            one that spent its budget is not followed by a prefill at once. A list that is driven to
            its end needs neither; there only the decode slots bound admission.
    """

    def __init__(self, model: AsrModel, strategy: DecodeStrategy, config: EngineConfig) -> None:
        """`model` sits on its device already; `strategy` was built for it."""
        self.model = model
        self.strategy = strategy
        self.config = config
        self.counters = Counters()
        self.device = next(model.parameters()).device
        limits = BatchLimits(config.max_batch_size, config.max_batch_seconds, 8 * config.max_batch_size)
        self._buffer = LookaheadBuffer(limits, strategy.window_samples)
        self._collator = Collator(self.device)
        self._memory = MemoryRelease()
        self._next: Future[Collated] | None = None
        self._next_batch: MicroBatch | None = None
        self._in_flight: tuple[MicroBatch, PendingDecode] | None = None
        self._suspects: list[tuple[Sequence[Request], Exception]] = []
        self._skipped = 0
        self._longest = 0  # window in samples, of the requests since there was nothing to do
        self.interactive = True

    # Queue ------------------------------------------------------------------------------------

    def add(self, request: Request) -> None:
        """Queue a request."""
        # Of what is in here now: one long row must not narrow every list after its own.
        before = self._longest if self.has_work else 0
        self._longest = max(before, self.strategy.window_samples(request))
        self._buffer.add(request)

    @property
    def wants_more(self) -> bool:
        """True while the look-ahead window has room."""
        return not self._buffer.full

    @property
    def has_work(self) -> bool:
        """True until every queued request has come out of `step`."""
        return bool(
            len(self._buffer)
            or self._next is not None
            or self._in_flight is not None
            or self._suspects
            or self.strategy.has_pending()
        )

    def drop_all(self) -> None:
        """Forget every request that has not come out."""
        self.drop_waiting()
        self._in_flight = None
        self._suspects.clear()
        self.strategy.abort()

    def drop_waiting(self) -> None:
        """Forget the requests that have not reached the encoder."""
        if self._next is not None:
            wait([self._next])
        self._next = self._next_batch = None
        while self._buffer.pop() is not None:
            pass

    def close(self) -> None:
        """Release the collate thread."""
        self._collator.close()

    # One tick ---------------------------------------------------------------------------------

    @torch.inference_mode()
    def step(self) -> list[Outcome]:
        """Do one tick of work and return the requests that finished in it."""
        outcomes = self._tick_incremental() if self.strategy.incremental else self._tick_one_shot()
        # What ran out of memory beside others is tried again with nothing else in it.
        if self._suspects and not self.strategy.has_pending() and self._in_flight is None:
            requests, error = self._suspects.pop()
            outcomes += rescue(self._run_alone, requests, error, self.counters)
        return [out for one in outcomes if (out := self._settle(one)) is not None]

    def _settle(self, outcome: Outcome) -> Outcome | None:
        """Queue the replacement that the family wants for a doubtful result, else let it pass."""
        if outcome.error is None:
            again = self.strategy.reconsider(outcome.request, outcome.hypotheses)
            if again is not None:
                self.counters.redecoded += 1
                self.add(again)
                return None
        return outcome

    def _tick_incremental(self) -> list[Outcome]:
        # Fill the decode slots first: a step costs about the same however many rows it carries.
        while self._may_admit() and (collated := self._take()) is not None:
            self._skipped = 0
            self._begin(collated)
            self._prefetch()
        if not self.strategy.has_pending():
            return []
        budget = StepBudget.for_tick(self.config, timed=self.interactive)
        try:
            with self.counters.time("decode"):
                finished = self.strategy.advance(budget)
        except Exception as error:
            # A step carries rows of several batches, and which of them broke it is not known.
            self._suspects.append((self.strategy.abort(), forget_frames(error)))
            return []
        self.counters.steps += budget.used
        self._skipped = self._skipped + 1 if self.interactive and budget.spent else 0
        return [Outcome(request, nbest) for request, nbest in finished]

    def _may_admit(self) -> bool:
        """True when a waiting micro-batch may be prefilled now.

        A tick that follows one which spent its decode budget does not prefill, at most
        MAX_SKIPPED_ADMITS times in a row; a thin queue is held for `decode_admit_window_ms`.
        """
        waiting = len(self._buffer) + (len(self._next_batch.requests) if self._next_batch else 0)
        # New rows would keep those that broke waiting for the engine to be empty.
        if not waiting or self._suspects:
            return False
        held_s = self.config.decode_admit_window_ms / 1000
        thin = self._next_batch is None and waiting < self.config.max_batch_size
        if thin and time.perf_counter() - self._buffer.oldest_admitted_at < held_s:
            return False
        if not self.strategy.has_pending():
            return True
        if 0 < self._skipped <= MAX_SKIPPED_ADMITS:
            return False
        wanted = len(self._next_batch.requests) if self._next_batch else 1
        return self._slots() - self.strategy.pending_rows() >= wanted

    def _slots(self) -> int:
        """Rows that may decode at once: the configured slots, within the decoder-cache budget."""
        slots = self.config.max_decode_slots or 2 * self.config.max_batch_size
        if self.config.decode_kv_budget_gib is not None:
            # Rows of several windows decode side by side, and may be padded to the longest of them.
            row = self.strategy.row_bytes(self._longest)
            slots = min(slots, max(1, int(self.config.decode_kv_budget_gib * 2**30 / max(row, 1))))
        return slots

    def _begin(self, collated: Collated) -> None:
        requests = collated.batch.requests
        try:
            encoder_out = self._encode(collated)
            with self.counters.time("decode"):
                self.strategy.begin_offline(encoder_out, requests)
        except Exception as error:
            self._suspects.append((requests, forget_frames(error)))

    def _tick_one_shot(self) -> list[Outcome]:
        launched: tuple[MicroBatch, PendingDecode] | None = None
        outcomes: list[Outcome] = []
        collated = None if self._suspects else self._take()
        if collated is not None:
            requests = collated.batch.requests
            try:
                encoder_out = self._encode(collated)
                self._prefetch()
                with self.counters.time("decode"):
                    timed = any(request.options.word_timestamps for request in requests)
                    pending = None if timed else self.strategy.decode_offline_async(encoder_out, requests)
                    if pending is None:
                        nbests = self.strategy.decode_offline(encoder_out, requests)
                        outcomes = [Outcome(r, n) for r, n in zip(requests, nbests, strict=True)]
                    else:
                        launched = (collated.batch, pending)
            except Exception as error:
                self._suspects.append((requests, forget_frames(error)))
        earlier, self._in_flight = self._in_flight, launched
        return self._collect(earlier) + outcomes

    def _collect(self, flight: tuple[MicroBatch, PendingDecode] | None) -> list[Outcome]:
        if flight is None:
            return []
        batch, pending = flight
        try:
            with self.counters.time("readback"):
                nbests = pending.collect()
        except Exception as error:
            self._suspects.append((batch.requests, forget_frames(error)))
            return []
        return [Outcome(r, n) for r, n in zip(batch.requests, nbests, strict=True)]

    # Stations ---------------------------------------------------------------------------------

    def _take(self) -> Collated | None:
        """The next collated micro-batch, prefetched or made now; None when nothing waits."""
        self._prefetch()
        if self._next is None:
            return None
        future, batch = self._next, self._next_batch
        # Before the result is asked for: a batch that could not be collated must not be taken again.
        self._next = self._next_batch = None
        try:
            with self.counters.time("collate_wait"):
                return future.result()
        except Exception as error:
            if batch is not None:
                self._suspects.append((batch.requests, forget_frames(error)))
            return None

    def _prefetch(self) -> None:
        """Start collating the next micro-batch behind the present one."""
        if self._next is None:
            # No more rows than may be prefilled now; while no slot is free, a batch that waits for enough.
            free = self._slots() - self.strategy.pending_rows() if self.strategy.incremental else None
            batch = self._buffer.pop(self._slots() if free is not None and free <= 0 else free)
            if batch is not None:
                self._next, self._next_batch = self._collator.submit(batch), batch

    def _encode(self, collated: Collated) -> EncoderOutput:
        samples, requests = collated.take(), collated.batch.requests
        self.counters.count_batch(collated.batch)
        if self.device.type == "cpu":
            self._memory.before_encoding(samples.numel() / self.model.frontend.sample_rate)
        with self.counters.time("features"):
            features, frames = self.model.frontend(samples, collated.lengths)
        # The encoder's forward takes the most memory, and needs the features alone.
        del samples
        conditioning = self.model.encoder_conditioning(requests)
        forward = (
            self.model.forward_offline if self.strategy.consumes == "log_probs" else self.model.encode_offline
        )
        with self.counters.time("encoder"):
            encoder_out = forward(features, frames, **conditioning)
            if self.strategy.consumes == "both" and encoder_out.log_probs is None:
                encoder_out = replace(encoder_out, log_probs=self.model.frame_log_probs(encoder_out))
        return encoder_out

    def _run_alone(self, requests: Sequence[Request]) -> list[Outcome]:
        """Encode and decode `requests` to the end with nothing else in flight; errors pass through."""
        by_window: dict[int, list[Request]] = {}
        for request in requests:
            by_window.setdefault(self.strategy.window_samples(request), []).append(request)
        finished: list[Outcome] = []
        try:
            for window, rows in by_window.items():
                with self.counters.time("collate_wait"):
                    collated = self._collator.collate(MicroBatch(tuple(rows), window))
                finished += self._decode_alone(self._encode(collated), rows)
        except Exception:
            # The caller tries the rows again; one that stayed pending would come out twice.
            self.strategy.abort()
            raise
        return finished

    def _decode_alone(self, encoder_out: EncoderOutput, requests: Sequence[Request]) -> list[Outcome]:
        with self.counters.time("decode"):
            if not self.strategy.incremental:
                nbests = self.strategy.decode_offline(encoder_out, requests)
                return [Outcome(r, n) for r, n in zip(requests, nbests, strict=True)]
            self.strategy.begin_offline(encoder_out, requests)
            budget = StepBudget.unlimited()
            finished: list[Outcome] = []
            while self.strategy.has_pending():
                finished += [Outcome(r, n) for r, n in self.strategy.advance(budget)]
            self.counters.steps += budget.used
            return finished
