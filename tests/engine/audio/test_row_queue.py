"""The queue alone: whose turn it is, and who must never wait for whom."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from oasr.audio.cutting import AudioWindow
from oasr.audio.pieces import Ending, Piece
from oasr.audio.row_queue import LoadedRow, QueueLimits, RowDroppedError, RowQueue
from oasr.types import Utterance

RATE = 100


def make(**limits) -> RowQueue:
    return RowQueue(
        QueueLimits(**{"rows": 50, "seconds": 60.0, "long_rows": 2, "sample_rate": RATE, **limits})
    )


def rows(number: int, seconds: float = 1.0, ended: bool = True) -> list[LoadedRow]:
    window = AudioWindow(0, np.zeros(round(seconds * RATE), np.float32))
    piece = Piece((window,), Ending(seconds) if ended else None)
    return [LoadedRow(Utterance(f"u{number}", index=number), None, piece=piece, number=number)]


def taken(queue: RowQueue) -> int:
    found = queue.take(lambda: True)
    assert found is not None
    return found[0].number


def in_time(work) -> None:
    """Run `work`, which must not wait."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it waits"


def test_pieces_and_rows_take_turns_and_so_do_long_recordings():
    queue = make()
    for number in (0, 1):
        for _ in range(5):
            queue.put_piece(number, rows(number, ended=False), last=False)
    for number in range(2, 12):
        queue.put(number, rows(number))
    order = [taken(queue) for _ in range(17)]
    # Each recording comes up in list order; what it has left then waits for its turn among the others.
    assert order[:3] == [0, 0, 1]
    assert order[3::2] == [0, 1, 0, 1, 0, 1, 1]
    assert order[4::2] == [2, 3, 4, 5, 6, 7, 8]


def test_the_row_that_all_wait_for_is_not_kept_waiting_by_long_ones_behind_it():
    queue = make(long_rows=1, seconds=1.0)
    queue.put_piece(1, rows(1, ended=False), last=False)
    in_time(lambda: queue.put_piece(0, rows(0, ended=False), last=False))
    assert taken(queue) == 0 and taken(queue) == 1
    in_time(lambda: queue.put(2, rows(2, 1000.0)))
    assert taken(queue) == 2


def test_no_more_long_recordings_are_open_than_may_be():
    queue = make(long_rows=1)
    queue.put_piece(0, rows(0, ended=False), last=False)
    done = threading.Event()
    thread = threading.Thread(
        target=lambda: (queue.put_piece(2, rows(2, ended=False), last=False), done.set()), daemon=True
    )
    thread.start()
    assert not done.wait(0.1)
    queue.put_piece(0, rows(0), last=True)
    assert taken(queue) == 0 and taken(queue) == 0
    assert done.wait(10)
    queue.close()


def test_nor_does_each_open_that_comes_next_while_those_in_front_are_slow():
    queue = make(long_rows=1)
    for number in range(4):
        in_time(lambda number=number: queue.put_piece(number, rows(number, ended=False), last=False))
        assert taken(queue) == number
    opened = threading.Event()
    thread = threading.Thread(
        target=lambda: (queue.put_piece(4, rows(4, ended=False), last=False), opened.set()), daemon=True
    )
    thread.start()
    assert not opened.wait(0.1) and not queue.settled
    # Those in front go on meanwhile, and one that ends makes room.
    queue.put_piece(0, rows(0, ended=False), last=False)
    assert taken(queue) == 0 and not opened.is_set()
    queue.put_piece(0, rows(0), last=True)
    assert taken(queue) == 0
    assert opened.wait(10) and taken(queue) == 4
    queue.close()


def test_the_end_comes_behind_the_last_piece():
    queue = make()
    assert queue.wait_for_room() and queue.enter() == 0
    queue.put_piece(0, rows(0, ended=False), last=False)
    queue.end(None)
    assert taken(queue) == 0 and not queue.settled
    queue.put_piece(0, rows(0), last=True)
    assert taken(queue) == 0 and queue.settled and queue.take(lambda: False) is None
    assert not queue.wait_for_room()


def test_a_dropped_recording_is_told_to_its_reader_and_leaves_no_seconds_behind():
    queue = make()
    queue.put_piece(0, rows(0, ended=False), last=False)
    queue.put_piece(0, rows(0, 5.0, ended=False), last=False)
    assert taken(queue) == 0
    queue.drop(0)
    assert queue.ready_s == 0
    with pytest.raises(RowDroppedError):
        queue.put_piece(0, rows(0, ended=False), last=False)
    queue.drop(7)  # not open: nothing to do
    queue.put(1, rows(1))
    assert taken(queue) == 1
