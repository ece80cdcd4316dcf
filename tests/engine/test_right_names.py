"""Whatever a list holds and however it is run, every row ends once: as its own text or its own error.

Trained weights hear for real here, so that a result beside another row's name shows. OASR_EXAMPLES=1000 tries
more, at random. No run may leave a file open or a reader behind.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest
from helpers.spoken_rows import WINDOW_S, Sounds, SpokenRow, lay_out, spoken_lists
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oasr import DecodingOptions
from oasr.audio import pieces
from oasr.audio.loader import LoaderSettings
from oasr.config import EngineConfig
from oasr.engine import Engine

EXAMPLES = int(os.environ.get("OASR_EXAMPLES", "0"))
SEARCH = settings(
    max_examples=EXAMPLES or 45,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # lists are short enough to be read as they are, and each costs a second
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def sounds(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Sounds:
    return Sounds(tmp_path_factory.mktemp("sounds"), repo_root / "manifests" / "digits.jsonl")


@pytest.fixture(scope="module")
def engines(repo_root: Path):
    """Engines of several batch sizes, used for one list after the other."""
    folder = str(repo_root / "tests" / "checkpoints" / "digits-conformer")
    made = [
        Engine(EngineConfig(folder, "cpu", max_batch_size=size, max_window_s=WINDOW_S, decode_method=method))
        for size, method in ((1, "ctc_cuda"), (3, "ctc_cuda"), (16, "ctc_cuda"), (4, "ctc_aed_rescoring"))
    ]
    yield made
    for engine in made:
        engine.close()


def open_handles() -> set[tuple[str, str]]:
    """Files that this process has open, without those that libraries keep for their own threads."""
    found = set()
    for handle in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # the folder itself, which is closed by now
            if (opened := str(handle.readlink())).startswith("/") and "onnxruntime" not in opened:
                found.add((handle.name, opened))
    return {one for one in found if not one[1].startswith("/proc/")}


def readers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "oasr-reader"}


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def test_the_sounds_are_told_apart(sounds):
    texts = [sound.text for sound in (*sounds.short, *sounds.long)]
    assert len(sounds.short) >= 20 and len(set(texts)) == len(texts)


@SEARCH
@given(st.data())
def test_every_row_ends_once_as_itself(sounds, engines, tmp_path_factory, monkeypatch, data):
    rows = data.draw(spoken_lists(sounds), "rows")
    engine = data.draw(st.sampled_from(engines), "engine")
    loading = LoaderSettings(
        engine.sample_rate,
        workers=data.draw(st.integers(1, 5), "workers"),
        ahead_rows=data.draw(st.integers(1, 8), "ahead"),
        ahead_seconds=data.draw(st.sampled_from([0.5, 5.0, 600.0]), "seconds ahead"),
        allow_pipes=True,
    )
    # A recording is long, and comes in pieces, from here on: all windows of a few seconds, or none.
    monkeypatch.setattr(pieces, "LONG_S", data.draw(st.sampled_from([1.0, 6.0, 120.0]), "long from"))
    in_order, timed = data.draw(st.booleans(), "in order"), data.draw(st.booleans(), "timed")
    left_at = data.draw(st.none() | st.integers(0, len(rows)), "left at")
    folder = tmp_path_factory.mktemp("list") / "audio"
    lay_out(folder, rows)
    gc.collect()  # what other tests left open is not to be closed in the middle of this one
    handles, others = open_handles(), readers()

    def work(some: list[SpokenRow], most: int | None = None) -> list:
        listed = [row.utterance(folder, index) for index, row in enumerate(some)]
        stream = engine.stream(listed, DecodingOptions(word_timestamps=timed), loading, in_order)
        with closing(stream):
            return list(islice(stream, most))

    results = work(rows, left_at)
    if left_at is not None:  # the rest goes through the same engine, which was left in the middle of its work
        seen = {row.id for row, _ in results}
        results += work([row for row in rows if row.id not in seen])
    elif in_order:
        assert [row.id for row, _ in results] == [row.id for row in rows]
    assert Counter(row.id for row, _ in results) == Counter(row.id for row in rows)
    known = {row.id: row for row in rows}
    for row, output in results:
        assert output.request_id == row.id
        assert known[row.id].is_right(output.text, output.error_message), (known[row.id], output)
        if timed and output.ok:
            assert [word.word for word in output.words] == output.text.split()
    wait_until(lambda: open_handles() == handles)
    assert not readers() - others
