"""How a list goes faster with more engines: `--launcher ray` on one GPU and on several, in turn.

    python ci/ray_gpus.py manifests/gate.jsonl --model base --engines 2 --rows 12000 --rounds 2
    python ci/ray_gpus.py manifests/digits.jsonl --model tests/checkpoints/digits-conformer --cpu --rows 400

Repeats the list, under ids of its own, to `--rows` rows; runs `oasr transcribe` on it with one engine and
with `--engines` of them, one after the other, `--rounds` times; prints a line a run, then the ratios of the
medians:

- work: from the first engine being ready to the last row being written, as in the summary of the command;
- whole: the command from its start to its end, with Ray, all engines and their first batches starting up.

Exits with 1 when a run does not finish every row, or the texts of two runs differ in more than `--differ`
rows: half-precision sums depend on the batch, so that a row in some thousands may change a word.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import median

RTFX = re.compile(r"([0-9.]+)× real time")


@dataclass
class Timed:
    """One run: its engines, audio seconds, seconds of work and of the whole command."""

    engines: int
    rows: int
    audio_s: float
    work_s: float
    whole_s: float


def main() -> int:
    """Run everything; the exit code."""
    asked = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        listed = _repeated(Path(asked.list), asked.rows, Path(folder) / "list.jsonl")
        runs: list[Timed] = []
        texts: list[dict[str, str]] = []
        for turn in range(asked.rounds):
            # In turn, and each first once: what drifts over time meets both alike.
            for engines in (1, asked.engines) if turn % 2 == 0 else (asked.engines, 1):
                timed, text = _run(asked, listed, engines, Path(folder) / "out")
                runs.append(timed)
                texts.append(text)
                print(_line(timed), flush=True)
    differ = max(sum(text[row] != texts[0][row] for row in texts[0]) for text in texts)
    one, more = ([run for run in runs if run.engines == n] for n in (1, asked.engines))
    ratios = {
        name: median(getattr(run, name) for run in one) / median(getattr(run, name) for run in more)
        for name in ("work_s", "whole_s")
    }
    print(
        f"{asked.engines} engines over 1: work {ratios['work_s']:.3f}×, whole command "
        f"{ratios['whole_s']:.3f}×; {differ} of {asked.rows} texts differ between runs"
    )
    print(json.dumps({"runs": [asdict(run) for run in runs], "ratios": ratios, "differ": differ}))
    return int(differ > asked.differ)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("--model", default="base")
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--rows", type=int, default=12000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--differ", type=int, default=12)
    parser.add_argument("--cpu", action="store_true", help="engines on CPUs")
    return parser.parse_args()


def _repeated(source: Path, rows: int, target: Path) -> Path:
    """The list over and over, with absolute paths."""
    known = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    with target.open("w", encoding="utf-8") as out:
        for number, row in enumerate(islice(cycle(known), rows)):
            audio = (source.parent / (row.get("audio") or row["audio_filepath"])).resolve()
            kept = {key: row[key] for key in ("language", "duration") if key in row}
            out.write(json.dumps({"id": f"{number:06}-{row['id']}", "audio": str(audio)} | kept) + "\n")
    return target


def _run(asked: argparse.Namespace, listed: Path, engines: int, out: Path) -> tuple[Timed, dict[str, str]]:
    """One command; its times, and the text of every row."""
    command = [sys.executable, "-m", "oasr_cli", "transcribe", str(listed), "--model", asked.model]
    command += ["-o", str(out), "--overwrite", "--batch-size", str(asked.batch_size), "--launcher", "ray"]
    command += ["--actors" if asked.cpu else "--num-gpus", str(engines)]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    whole = time.perf_counter() - began
    found = RTFX.search(done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}")
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text("utf-8").splitlines()]
    audio = sum(row["duration"] for row in rows)
    timed = Timed(engines, len(rows), audio, audio / float(found[1]), whole)
    return timed, {row["id"]: row["pred_text"] for row in rows}


def _line(run: Timed) -> str:
    return (
        f"{run.engines} engines: {run.rows} rows, {run.audio_s / 3600:.2f} h · work {run.work_s:.2f} s, "
        f"{run.rows / run.work_s:.1f} rows/s, {run.audio_s / run.work_s:.1f}× real time · "
        f"whole command {run.whole_s:.2f} s, {run.audio_s / run.whole_s:.1f}×"
    )


if __name__ == "__main__":
    sys.exit(main())
