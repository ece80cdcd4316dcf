"""Load runs: long lists through the real command, with its memory, handles, threads and pace watched.

    python ci/load.py rows                              20,000 rows of 0.3 to 30 s, cut from the digits
    python ci/load.py rows --rows 2000 --mean 6 --model tiny.en --speech manifests/gate.jsonl
    python ci/load.py hour --at last --to stdout        10,000 clips under a second, one recording of an hour
    python ci/load.py list LIST.jsonl --model tiny.en   a list of your own

Flags of `oasr transcribe` may follow behind `--`. Linux only: what is watched is read from /proc every
0.2 s, the rows from the growing results. A list is cut into ten parts; each part of `rows` has the same
lengths in another order, so that their paces compare. Pace is given by the clock, by processor time, and by
processor time at the speed that the machine had then, which is what the verdict is about: neighbours slow the
other two. Exits with 4 when a figure is not what its line expects.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from load_watch import EVERY_S, Watched, watch

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "tests" / "checkpoints" / "digits-conformer"
SHORTEST_S, LONGEST_S, CLIP_S, HOUR_S = 0.3, 30.0, (0.3, 0.9), 3600.0
PARTS, HOUR_ID = 10, "the-hour"
RSS_SPREAD, PACE, HANDLES = 0.05, 0.95, 2


# Lists ----------------------------------------------------------------------------------------


def join_speech(manifest: Path, path: Path, seconds: float | None = None) -> float:
    """Write the recordings of a list into one file, again and again up to `seconds`; how long it is."""
    import numpy as np
    import soundfile

    rows = [json.loads(line) for line in manifest.read_text("utf-8").splitlines()]
    read = [soundfile.read(manifest.parent / row["audio"], dtype="int16") for row in rows]
    once, rate = np.concatenate([samples for samples, _ in read]), read[0][1]
    whole = once if seconds is None else np.resize(once, round(seconds * rate))
    soundfile.write(path, whole, rate)
    return len(whole) / rate


def lengths(count: int, mean_s: float, draw: random.Random) -> list[float]:
    """Exponential lengths, `mean_s` above the shortest on average; the bounds are among them."""
    drawn = (min(LONGEST_S, SHORTEST_S + draw.expovariate(1 / mean_s)) for _ in range(count - 2))
    return [SHORTEST_S, LONGEST_S, *drawn]


def cut_rows(audio: Path, length_s: float, durations: Iterator[float], draw: random.Random) -> list[dict]:
    """Rows of such durations, each from a place of its own in the recording."""
    return [
        {"id": f"row-{n:06}", "audio": str(audio), "offset": round(draw.uniform(0, length_s - d), 3)}
        | {"duration": round(d, 3)}
        for n, d in enumerate(durations)
    ]


def write_list(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


# The runs -------------------------------------------------------------------------------------


def run_rows(args: argparse.Namespace, folder: Path) -> bool:
    draw = random.Random(args.seed)
    length_s = join_speech(args.speech, folder / "speech.flac")
    part = lengths(args.rows // PARTS, args.mean, draw)
    durations = [d for _ in range(PARTS) for d in draw.sample(part, len(part))]
    rows = cut_rows(folder / "speech.flac", length_s, iter(durations), draw)
    print(f"{len(rows)} rows, {sum(durations) / 3600:.2f} h of audio, {sum(part) / len(part):.2f} s a row")
    return run_list(args, folder, write_list(folder / "list.jsonl", rows))


def run_list(args: argparse.Namespace, folder: Path, listed: Path) -> bool:
    total = sum(1 for line in listed.read_bytes().splitlines() if line.strip())
    found = watch([*command(args), str(listed)], folder, folder / "out")
    print_parts(found, total)
    return judge_list(found, total, folder / "out")


def run_hour(args: argparse.Namespace, folder: Path) -> bool:
    draw = random.Random(args.seed)
    length_s = join_speech(args.speech, folder / "speech.flac")
    join_speech(args.speech, folder / "hour.flac", HOUR_S)
    clips = cut_rows(
        folder / "speech.flac", length_s, (draw.uniform(*CLIP_S) for _ in range(args.clips)), draw
    )
    hour = {"id": HOUR_ID, "audio": str(folder / "hour.flac")}
    at = {"first": 0, "middle": args.clips // 2, "last": args.clips}[args.at]
    listed = write_list(folder / "alone.jsonl", [hour])
    alone = watch([*command(args), str(listed)], folder, folder / "alone")
    took_s = alone.samples[-1].at_s - alone.ready_s
    listed = write_list(folder / "list.jsonl", [*clips[:at], hour, *clips[at:]])
    out = folder / "out" if args.to == "folder" else None
    found = watch([*command(args), str(listed)], folder, out, HOUR_ID.encode())
    return judge_hour(found, args.clips + 1, took_s)


def command(args: argparse.Namespace) -> list[str]:
    own = ["--model", str(args.model), "--no-progress", *args.flags]
    return [sys.executable, "-m", "oasr_cli", "transcribe", *own]


# What came out --------------------------------------------------------------------------------


def print_parts(found: Watched, total: int) -> None:
    print("rows        rows/s  rows/CPU s  rows/work s   RSS MB median    max   handles   threads")
    for first, last in bounds(total):
        samples = found.between(first, last)
        wall, cpu, work = pace(found, first, last)
        rss = [sample.rss_mb for sample in samples]
        print(
            f"{first:6}-{last:<6}{wall:7.1f}{cpu:12.1f}{work:13.1f}{statistics.median(rss):16.0f}{max(rss):7.0f}"
            f"{span(s.handles for s in samples):>10}{span(s.threads for s in samples):>10}"
        )


def judge_list(found: Watched, total: int, out: Path) -> bool:
    written = [json.loads(line) for line in (out / "results.jsonl").read_bytes().splitlines()]
    failed = sum("error" in row for row in written)
    settled = [found.between(*part) for part in bounds(total)[1:]]
    rss = [statistics.median(sample.rss_mb for sample in part) for part in settled]
    handles = [statistics.median(sample.handles for sample in part) for part in settled]
    first, last = (pace(found, *part) for part in (bounds(total)[0], bounds(total)[-1]))
    wall, cpu, work = (late / early for early, late in zip(first, last, strict=True))
    spread = (max(rss) - min(rss)) / (max(rss) + min(rss))
    return verdict(
        (f"the command ended with exit code {found.code}", found.code == 0),
        (f"{len(written)} results of {total} rows, {failed} failed", len(written) == total and not failed),
        (f"RSS behind the first tenth: medians within ±{spread:.1%} (±5 %)", spread <= RSS_SPREAD),
        (f"handles: medians {span(handles)}", max(handles) - min(handles) <= HANDLES),
        (
            f"last tenth / first: {wall:.3f} by the clock, {cpu:.3f} by CPU time, {work:.3f} by work (0.95)",
            work >= PACE,
        ),
    )


def judge_hour(found: Watched, total: int, alone_s: float) -> bool:
    end = found.samples[-1].at_s
    at_s, before = found.marked or (end, total - 1)
    last_clip_s = found.when(total - 1 if before == total - 1 else total)[0]
    came = [two.at_s for one, two in pairwise(found.samples) if two.rows > one.rows]
    print(f"the hour alone takes {alone_s:.1f} s; the whole list {end - found.ready_s:.1f} s")
    print(f"the hour is result {before + 1} of {total}, {at_s - found.ready_s:.1f} s after the start", end="")
    print(f"; the last clip came after {last_clip_s - found.ready_s:.1f} s")
    print(f"longest time without a result {longest([found.ready_s, *came]):.1f} s", end="")
    print(f", without a window of the hour {longest(found.parts_at):.1f} s" if found.parts_at else "")
    print(f"RSS at most {max(sample.rss_mb for sample in found.samples):.0f} MB")
    behind_s = max(0.0, at_s - last_clip_s)
    return verdict(
        (f"{found.samples[-1].rows} results of {total} rows", found.code == 0),
        (f"the hour came {behind_s:.1f} s behind the last clip", behind_s <= 1.1 * alone_s + 2 * EVERY_S),
    )


def bounds(total: int) -> list[tuple[int, int]]:
    return [(total * n // PARTS, total * (n + 1) // PARTS) for n in range(PARTS)]


def pace(found: Watched, first: int, last: int) -> tuple[float, ...]:
    """Rows a second, a CPU second and a second of work, from row `first` (the first row starts) to `last`."""
    start, end = found.when(max(first, 1)), found.when(last)
    rows = last - max(first, 1)
    return tuple(rows / max(two - one, 1e-9) for one, two in zip(start, end, strict=True))


def longest(times: list[float]) -> float:
    """The longest wait between two of these moments."""
    return max((two - one for one, two in pairwise(times)), default=0.0)


def span(values: Iterator[float] | list[float]) -> str:
    found = sorted(set(values))
    return f"{found[0]:g}" if found[0] == found[-1] else f"{found[0]:g}-{found[-1]:g}"


def verdict(*findings: tuple[str, bool]) -> bool:
    for text, good in findings:
        print(f"{'good' if good else 'BAD '} {text}")
    return all(good for _, good in findings)


RUNS: dict[str, Callable[..., bool]] = {"rows": run_rows, "hour": run_hour, "list": run_list}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", choices=RUNS)
    parser.add_argument("listed", nargs="?", type=Path, help="the list of `list`")
    parser.add_argument("--model", default=DIGITS)
    parser.add_argument("--speech", type=Path, default=ROOT / "manifests" / "digits.jsonl")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument(
        "--mean", type=float, default=1.5, help="seconds that a row has above the shortest, on average"
    )
    parser.add_argument("--clips", type=int, default=10_000)
    parser.add_argument("--at", choices=("first", "middle", "last"), default="first")
    parser.add_argument("--to", choices=("folder", "stdout"), default="folder")
    parser.add_argument("--seed", type=int, default=1)
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    args.flags = flags
    with tempfile.TemporaryDirectory(prefix="oasr-load-") as name:
        more = [args.listed.resolve()] if args.run == "list" else []
        raise SystemExit(0 if RUNS[args.run](args, Path(name), *more) else 4)


if __name__ == "__main__":
    main()
