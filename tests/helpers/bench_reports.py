"""Reports of `oasr bench` with figures that a test chooses."""

from __future__ import annotations

from copy import deepcopy

from oasr.bench.report import build
from oasr.bench.runs import Measured, Pass
from oasr.executor.counters import Counters

ENVIRONMENT = {
    "date": "2026-01-02T03:04:05+00:00",
    "cpu": "Test CPU <9000>",
    "cores": 4,
    "memory_bytes": 2**34,
    "load_average": 0.1,
    "system": "Linux",
    "gpu": None,
    "gpu_driver": None,
    "cuda": None,
    "python": "3.12.1",
    "oasr": "0.1.0",
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "uncommitted_changes": False,
    "packages": {"torch": "2.10.0"},
    "threads": 4,
    "reader_threads": 2,
}
MODEL = {"name": "tiny.en", "architecture": "whisper", "format": "ctranslate2", "sha256": "a" * 64}
ERRORS = {
    "wer": {
        "rate": 5.0,
        "substitutions": 3,
        "deletions": 1,
        "insertions": 1,
        "reference_units": 100,
        "normalizer": "english",
    },
    "languages": {},
    "failed": 0,
    "without_reference": 0,
}


def timed_pass(wall_s: float, rows: int = 8, texts: str = "t") -> Pass:
    """A pass over `rows` rows of 3 s, which come out one after another in equal steps."""
    at = tuple(wall_s * (n + 1) / rows for n in range(rows))
    counters = Counters(
        seconds={"read": 0.1 * wall_s, "encoder": 0.6 * wall_s, "decode": 0.2 * wall_s},
        batches=2,
        rows=rows,
        useful_samples=30,
        padded_samples=120,
    )
    audio = tuple(3.0 * (n + 1) for n in range(rows))
    return Pass(at, audio, at, rows, 0, counters, texts)


def measured(walls_s=(2.0, 2.2, 1.8), batch_size=8, **changes) -> Measured:
    """A run whose passes take `walls_s`."""
    facts = {
        "batch_size": batch_size,
        "in_flight": 2,
        "device": "cpu",
        "dtype": "int16",
        "decode_method": "aed",
        "model": MODEL,
        "environment": ENVIRONMENT,
        "load_s": 1.5,
        "warmups": (timed_pass(4.0),),
        "passes": tuple(timed_pass(wall) for wall in walls_s),
        "start_rss_bytes": 200 * 2**20,
        "peak_rss_bytes": 512 * 2**20,
        "peak_rss_scope": "run",
        "peak_gpu_bytes": None,
        "score": ERRORS,
    }
    return Measured(**{**facts, **changes})


def make_report(*runs: Measured, **context) -> dict:
    """The report of `runs`, by default of one."""
    told = {
        "command": "oasr bench list.jsonl",
        "complete": True,
        "list": {"inputs": ["list.jsonl"], "sha256": "b" * 64, "rows": 8},
        "settings": {"repeat": 3, "warmup": 1, "decode_options": {}},
    }
    return deepcopy(build(runs or (measured(),), {**told, **context}))
