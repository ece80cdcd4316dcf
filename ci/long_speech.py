"""Long recordings, cut by each way of `--vad`, beside the same speech cut by hand: error rates in a table.

    python ci/long_speech.py LIST.jsonl --model tiny.en
    python ci/long_speech.py LIST.jsonl --model FOLDER --join 60 --pauses 0.7 5 1.2 --normalizer basic

A row of the list that has `segments` ({start, end, text}) is a long recording whose cuts are known. The other
rows are joined, `--join` of them to a recording, with white noise between them (`--noise`) for as many
seconds as `--pauses` says in turn. `by hand` transcribes every segment as a row of its own, or neighbours
together up to `--piece` seconds; each way of `--vad` transcribes the recording as one row. "Own place" is the
error rate of joined rows when a word counts for the row that it lies in, or nearest to, by the word times.
CPU time is that of the whole process, readers included.

`--check` exits with 1 when a way is more than half a percent worse than `by hand` over all recordings, in
all or at its own place.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from oasr import DecodingOptions, Engine, EngineConfig, RequestOutput, Utterance
from oasr.audio.waveform import read_waveforms
from oasr.scoring.wer import Score, score_row

BY_HAND = "by hand"
WAYS = ("pauses", "energy", "silero")
BOUND_PCT = 0.5
ROOM_S = 0.4
HEAD = ("recording", "cut", "WER %", "S / D / I", "words", "own place %", "windows", "speech s", "CPU s")


@dataclass(frozen=True)
class Part:
    """A stretch of a recording in seconds, and what is said in it."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Recording:
    """A long recording, its parts in order, and the pieces that a person would cut it into.

    Attributes:
        joined: the parts were put together here, so that each has a place of its own.
    """

    name: str
    audio: str
    parts: tuple[Part, ...]
    pieces: tuple[Part, ...]
    joined: bool = False

    @property
    def whole(self) -> Utterance:
        """All of it as one row."""
        duration = None if self.joined else self.parts[-1].end
        text = " ".join(part.text for part in self.parts)
        return Utterance(self.name, self.audio, text=text, duration=duration)

    @property
    def by_hand(self) -> list[Utterance]:
        """A row for each piece."""
        return [
            Utterance(
                f"{self.name}-{number}", self.audio, offset=one.start, duration=one.end - one.start,
                text=one.text,
            )
            for number, one in enumerate(self.pieces)
        ]  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """What one way made of one recording; `placed` is the score at the parts' own places."""

    recording: str
    way: str
    score: Score
    placed: Score | None = None
    windows: int = 0
    speech_s: float | None = None
    cpu_s: float = 0.0

    @property
    def cells(self) -> tuple[str, ...]:
        """As in HEAD."""
        score = self.score
        counts = f"{score.substitutions} / {score.deletions} / {score.insertions}"
        placed = "" if self.placed is None else f"{self.placed.rate:.2f}"
        speech = "" if self.speech_s is None else f"{self.speech_s:.0f}"
        return (
            self.recording, self.way, f"{score.rate:.2f}", counts, str(score.ref_units), placed,
            str(self.windows), speech, f"{self.cpu_s:.1f}",
        )  # fmt: skip


def main() -> int:
    args = parsed()
    rows = [json.loads(line) for line in args.list.read_text("utf-8").splitlines()][:: args.stride]
    with tempfile.TemporaryDirectory() as folder:
        findings = []
        print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
        with engine(args, "pauses") as loaded:
            recordings = found_in(rows, args, loaded.sample_rate, Path(folder))
            findings += [shown(by_hand(loaded, one, args.normalizer)) for one in recordings]
        for way in args.vad:
            with engine(args, way) as loaded:
                findings += [shown(as_a_whole(loaded, way, one, args.normalizer)) for one in recordings]
    if len(recordings) > 1:
        findings = [shown(summed(findings, way)) for way in (BY_HAND, *args.vad)]
    return 1 if args.check and worse(findings) else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", type=Path, metavar="LIST.jsonl")
    parser.add_argument("--model", default="tiny.en")
    parser.add_argument("--decode-method")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--option", action="append", default=[], metavar="K=V", help="decode options")
    parser.add_argument("--vad", nargs="+", default=WAYS)
    parser.add_argument("--stride", type=int, default=1, help="take every N-th row")
    parser.add_argument("--sort", metavar="KEY", help="sort rows by a key of theirs before they are joined")
    parser.add_argument("--join", type=int, default=60, metavar="ROWS")
    parser.add_argument("--pauses", type=float, nargs="+", default=(0.7, 5.0, 1.2), metavar="S")
    parser.add_argument("--noise", type=float, default=-60.0, metavar="DB", help="-inf is digital silence")
    parser.add_argument("--max-window", type=float, metavar="S")
    parser.add_argument("--piece", type=float, default=0.0, metavar="S", help="longest piece cut by hand")
    parser.add_argument(
        "--most", type=float, default=math.inf, metavar="S", help="take parts that end by then"
    )
    parser.add_argument("--normalizer", help="of the texts; the language's own")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def engine(args: argparse.Namespace, vad: str) -> Engine:
    """The model with one way of cutting."""
    options = dict(option.split("=", 1) for option in args.option)
    config = EngineConfig(
        args.model, args.device, args.dtype, args.decode_method,
        decode_options=options, vad=vad, max_window_s=args.max_window,
    )  # fmt: skip
    return Engine(config)


# The recordings ------------------------------------------------------------------------------------


def found_in(
    rows: Sequence[dict[str, Any]], args: argparse.Namespace, sample_rate: int, folder: Path
) -> list[Recording]:
    """The long recordings of the list, then its other rows joined to such in `folder`."""
    rows = [{**row, "audio": str(args.list.parent / row["audio"])} for row in rows]
    found, short = [], [row for row in rows if not row.get("segments")]
    for row in rows:
        parts = [Part(s["start"], s["end"], s["text"]) for s in row.get("segments", ())]
        parts = [part for part in parts if part.end <= args.most]
        if parts:
            found.append(Recording(row["id"], row["audio"], tuple(parts), tuple(merged(parts, args.piece))))
    if args.sort is not None:
        short.sort(key=lambda row: row[args.sort])
    joins = [short[i : i + args.join] for i in range(0, len(short), args.join)]
    return found + [join(few, args, sample_rate, folder / f"{few[0]['id']}.wav") for few in joins]


def merged(parts: Sequence[Part], most_s: float) -> list[Part]:
    """Neighbours together as long as they last `most_s` at most."""
    found: list[Part] = []
    for part in parts:
        if found and part.end - found[-1].start <= most_s:
            part = Part(found[-1].start, part.end, f"{found.pop().text} {part.text}")
        found.append(part)
    return found


def join(rows: Sequence[dict[str, Any]], args: argparse.Namespace, sample_rate: int, path: Path) -> Recording:
    """Pause, row, pause, ..., row, pause in one file of 16 bits. A piece keeps a little of the pauses."""
    random, level, at = np.random.default_rng(4), 10 ** (args.noise / 20), 0.0
    pauses = [args.pauses[number % len(args.pauses)] for number in range(len(rows) + 1)]
    parts, pieces = [], []
    with soundfile.SoundFile(path, "w", sample_rate, 1) as file:
        for row, before, behind in zip(rows, pauses, pauses[1:], strict=False):
            file.write(random.normal(0, level, round(before * sample_rate)).astype(np.float32))
            samples = read_waveforms(Utterance(row["id"], row["audio"]), sample_rate)[0][1].samples
            file.write(samples)
            start, at = at + before, at + before + len(samples) / sample_rate
            parts.append(Part(start, at, row["text"]))
            lead, tail = (min(ROOM_S, pause / 2) for pause in (before, behind))
            pieces.append(Part(start - lead, at + tail, row["text"]))
        file.write(random.normal(0, level, round(pauses[-1] * sample_rate)).astype(np.float32))
    name = f"{rows[0]['id']} + {len(rows) - 1}"
    return Recording(name, str(path), tuple(parts), tuple(pieces), joined=True)


# What is made of them ------------------------------------------------------------------------------


def by_hand(loaded: Engine, recording: Recording, normalizer: str | None) -> Finding:
    """Every part by itself."""
    rows, start = recording.by_hand, time.process_time()
    outputs = transcribed(loaded, rows, recording.joined)
    cpu_s = time.process_time() - start
    texts = [(row.text or "", output.text or "") for row, output in zip(rows, outputs, strict=True)]
    score = pooled(texts, normalizer)
    placed = score if recording.joined else None
    return Finding(recording.name, BY_HAND, score, placed, len(rows), cpu_s=cpu_s)


def as_a_whole(loaded: Engine, way: str, recording: Recording, normalizer: str | None) -> Finding:
    """The recording as one row."""
    start = time.process_time()
    (output,) = transcribed(loaded, [recording.whole], recording.joined)
    cpu_s = time.process_time() - start
    score = pooled([(recording.whole.text or "", output.text or "")], normalizer)
    placed = pooled(at_their_places(recording.parts, output), normalizer) if recording.joined else None
    speech_s = None if output.speech is None else sum(end - begin for begin, end in output.speech)
    return Finding(recording.name, way, score, placed, len(output.segments), speech_s, cpu_s)


def transcribed(loaded: Engine, rows: list[Utterance], words: bool) -> list[RequestOutput]:
    """The results in order; none may have failed."""
    outputs = list(loaded.transcribe(rows, DecodingOptions(word_timestamps=words)))
    failed = [f"{output.request_id}: {output.error_message}" for output in outputs if not output.ok]
    if failed:
        sys.exit("\n".join(failed))
    return outputs


def at_their_places(parts: Sequence[Part], output: RequestOutput) -> list[tuple[str, str]]:
    """(text, what was heard there) of each part; the pauses are divided in their middles."""
    borders = [(a.end + b.start) / 2 for a, b in pairwise(parts)]
    heard: list[list[str]] = [[] for _ in parts]
    for word in output.words or ():
        heard[bisect(borders, (word.start + word.end) / 2)].append(word.word)
    return [(part.text, " ".join(words)) for part, words in zip(parts, heard, strict=True)]


def pooled(pairs: Sequence[tuple[str, str]], normalizer: str | None) -> Score:
    """The score over (reference, hypothesis) pairs."""
    return reduce(add, (score_row(*pair, None if normalizer else "en", normalizer) for pair in pairs))


def summed(findings: Sequence[Finding], way: str) -> Finding:
    """What one way made of all recordings."""
    mine = [one for one in findings if one.way == way]
    placed = [one.placed for one in mine if one.placed is not None]
    speech = [one.speech_s for one in mine if one.speech_s is not None]
    return Finding(
        "all",
        way,
        reduce(add, (one.score for one in mine)),
        reduce(add, placed) if placed else None,
        sum(one.windows for one in mine),
        sum(speech) if speech else None,
        sum(one.cpu_s for one in mine),
    )


def shown(finding: Finding) -> Finding:
    """Print it as a line of the table."""
    print(f"| {' | '.join(finding.cells)} |", flush=True)
    return finding


def worse(findings: Sequence[Finding]) -> list[str]:
    """Says which ways of a recording are worse than by hand; [] = none."""
    bound = BOUND_PCT + next(one.score.rate or 0.0 for one in findings if one.way == BY_HAND)
    found = []
    for one in findings:
        rate = max(score.rate or 0.0 for score in (one.score, one.placed) if score is not None)
        if rate > bound:
            found.append(f"{one.recording}, {one.way}: {rate:.2f} %, bound {bound:.2f} %")
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
