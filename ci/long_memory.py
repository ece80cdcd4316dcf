"""Memory and progress of `oasr transcribe` over one recording of hours, printed as one JSON line.

    python ci/long_memory.py LIST.jsonl --hours 3 --suffix flac -- --model tiny.en --vad silero
    python ci/long_memory.py RECORDING -- --model tiny.en

The recordings of the list are put one behind the other, again and again, at 16 kHz into one file. Flags
behind `--` go to the command, which writes into a folder. Of its resident memory `thirds_mb` is the median of
each third of the run behind the loading of the model, `peak_mb` what the kernel counted, both in 10^6 bytes.
`first_window_s` says when the first window of the recording was in partial.jsonl, counted from there, and
`windows_by_minute` how many were there after each minute. Linux only.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
from itertools import cycle
from pathlib import Path

import soundfile
from load_watch import watch
from oasr import Utterance
from oasr.audio.waveform import read_waveforms

RATE = 16000
BLOCK = 1 << 20  # samples at once: libsndfile's MP3 writer takes no more than so many


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, metavar="LIST.jsonl or RECORDING")
    parser.add_argument("--hours", type=float, default=3.0, help="of the file made from a list")
    parser.add_argument("--suffix", default="flac", help="of that file: wav, flac or mp3")
    parser.add_argument("flags", nargs="*", help="of oasr transcribe, behind --")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recording = args.source
        if recording.suffix == ".jsonl":
            recording = joined(recording, args.hours * 3600, Path(folder) / f"long.{args.suffix}")
        facts = watched(recording, Path(folder), args.flags)
    print(json.dumps({"recording": recording.name, "flags": args.flags} | facts))
    return int(facts["code"] != 0)


def joined(listed: Path, seconds: float, path: Path) -> Path:
    """Write `seconds` of the list's recordings into `path`."""
    rows = [json.loads(line) for line in listed.read_text("utf-8").splitlines()]
    left = round(seconds * RATE)
    with soundfile.SoundFile(path, "w", RATE, 1) as file:
        for row in cycle(rows):
            recording = Utterance(row["id"], str(listed.parent / row["audio"]))
            samples = read_waveforms(recording, RATE)[0][1].samples[:left]
            for i in range(0, len(samples), BLOCK):
                file.write(samples[i : i + BLOCK])
            left -= len(samples)
            if not left:
                break
    return path


def watched(recording: Path, folder: Path, flags: list[str]) -> dict[str, object]:
    """Run the command over `recording` and say what it took."""
    command = [sys.executable, "-m", "oasr_cli", "transcribe", str(recording), "--no-progress", *flags]
    found = watch(command, folder, folder / "out")
    if found.code:
        return {"code": found.code}
    row = json.loads((folder / "out" / "results.jsonl").read_text("utf-8"))
    rss = [sample.rss_mb for sample in found.samples if sample.at_s >= found.ready_s]
    third = -(-len(rss) // 3)
    parts = [at_s - found.ready_s for at_s in found.parts_at]
    wall_s = found.samples[-1].at_s - found.ready_s
    return {
        "code": found.code,
        "duration_s": row["duration"],
        "wall_s": round(wall_s, 1),
        "cpu_s": round(found.samples[-1].cpu_s, 1),
        "windows": len(row.get("segments", ())),
        "first_window_s": round(parts[0], 1) if parts else None,
        "windows_by_minute": [
            sum(at_s <= minute for at_s in parts) for minute in range(60, int(wall_s) + 1, 60)
        ],
        "thirds_mb": [round(statistics.median(rss[i : i + third])) for i in range(0, len(rss), third)],
        "peak_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6),
    }


if __name__ == "__main__":
    sys.exit(main())
