"""Word times of oasr beside those of openai-whisper and faster-whisper, on the same recordings and weights.

Write the words of each, with the Python that has it installed, then compare two files:

    python ci/word_agreement.py oasr MANIFEST --out ours.jsonl
    python ci/word_agreement.py openai-whisper MANIFEST --out openai.jsonl
    python ci/word_agreement.py faster-whisper MANIFEST --model FOLDER --out faster.jsonl
    python ci/word_agreement.py compare ours.jsonl openai.jsonl

openai-whisper gets the weights and alignment heads of the oasr model, so its Python needs oasr too (no
download); FOLDER is a CTranslate2 checkpoint. Both run greedily with their own word time-stamps. Words are
paired where the transcripts of a recording are equal (longest matching runs, case and punctuation left
out), and the differences of their times are printed. `--check` exits with 1 unless the median difference of
starts is at most 20 ms and 95 % are within 120 ms.
"""

from __future__ import annotations

import argparse
import difflib
import json
import statistics
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MEDIAN_S, WITHIN_S, SHARE = 0.020, 0.120, 0.95
EPSILON_S = 1e-6  # times are written with three decimals
Word = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=(*WRITERS, "compare"))
    parser.add_argument("files", type=Path, nargs="+", metavar="MANIFEST or OURS THEIRS")
    parser.add_argument("--model", default="tiny.en")
    parser.add_argument("--dtype", default="auto", help="compute type of oasr")
    parser.add_argument("--stride", type=int, default=1, help="take every N-th row")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--worst", type=int, default=0, help="also print the N largest differences of starts")
    args = parser.parse_args()
    if args.what == "compare":
        return compare(*map(read, args.files), args)
    manifest = args.files[0]
    rows = [json.loads(line) for line in manifest.read_text("utf-8").splitlines()][:: args.stride]
    rows = [{**row, "audio": str(manifest.parent / row["audio"])} for row in rows]
    with args.out.open("w", encoding="utf-8") as out:
        for row, words in zip(rows, WRITERS[args.what](args, rows), strict=True):
            out.write(json.dumps({"id": row["id"], "words": words}, ensure_ascii=False) + "\n")
    return 0


def read(path: Path) -> dict[str, list[Word]]:
    """Id → words of a file that this script or `oasr transcribe --word-timestamps` wrote."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["id"]: row["words"] for row in rows}


# Whose words ---------------------------------------------------------------------------------------


def words_of_oasr(args: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[list[Word]]:
    from oasr import DecodingOptions, Engine, EngineConfig, Utterance

    listed = [Utterance(row["id"], row["audio"], language=row["language"]) for row in rows]
    with Engine(EngineConfig(args.model, "cpu", args.dtype)) as engine:
        for output in engine.transcribe(listed, DecodingOptions(word_timestamps=True)):
            yield [
                {"word": w.word, "start": round(w.start, 3), "end": round(w.end, 3)}
                for w in output.words or ()
            ]


def words_of_openai_whisper(args: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[list[Word]]:
    import whisper
    from oasr import Utterance
    from oasr.audio.waveform import read_waveforms

    model = openai_model(args.model)
    for row in rows:
        samples = read_waveforms(Utterance(row["id"], row["audio"]), 16000)[0][1].samples
        result = whisper.transcribe(
            model, samples, language=row["language"], temperature=0.0, fp16=False, word_timestamps=True,
            condition_on_previous_text=False,
        )  # fmt: skip
        words = [word for segment in result["segments"] for word in segment["words"]]
        yield [{"word": w["word"], "start": float(w["start"]), "end": float(w["end"])} for w in words]


def openai_model(name: str) -> Any:
    """openai-whisper's own model class, filled with the weights that oasr loads under `name`."""
    import torch
    from oasr.checkpoints import load_model
    from oasr.checkpoints.whisper_names import openai
    from whisper.model import ModelDimensions, Whisper

    ours = load_model(name, torch.device("cpu"), "float32")
    dims, stored = ours.config.dims, ours.state_dict()
    theirs = Whisper(
        ModelDimensions(
            dims.n_mels, dims.encoder_positions, dims.width, dims.encoder_heads, dims.encoder_layers,
            dims.vocab_size, dims.decoder_positions, dims.width, dims.decoder_heads, dims.decoder_layers,
        )
    )  # fmt: skip
    state = {
        part: tensor
        for fused, parts in openai(dims).items()
        for part, tensor in zip(parts, stored[fused].chunk(len(parts)), strict=True)
        if part is not None
    }
    theirs.load_state_dict(state)
    heads = torch.zeros(dims.decoder_layers, dims.decoder_heads, dtype=torch.bool)
    heads[tuple(zip(*ours.alignment_heads, strict=True))] = True
    theirs.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
    return theirs.eval()


def words_of_faster_whisper(args: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[list[Word]]:
    from faster_whisper import WhisperModel

    model = WhisperModel(args.model, "cpu", compute_type="float32")
    for row in rows:
        segments, _ = model.transcribe(
            row["audio"], language=row["language"], beam_size=1, temperature=0, word_timestamps=True,
            condition_on_previous_text=False,
        )  # fmt: skip
        words = [word for segment in segments for word in segment.words or ()]
        yield [{"word": w.word, "start": round(w.start, 3), "end": round(w.end, 3)} for w in words]


WRITERS: dict[str, Callable[[argparse.Namespace, list[dict[str, Any]]], Iterator[list[Word]]]] = {
    "oasr": words_of_oasr,
    "openai-whisper": words_of_openai_whisper,
    "faster-whisper": words_of_faster_whisper,
}


# The comparison ------------------------------------------------------------------------------------


def compare(ours: dict[str, list[Word]], theirs: dict[str, list[Word]], args: argparse.Namespace) -> int:
    """Print how the times of paired words differ; 1 when that was to be checked and is too much."""
    pairs = [(name, *pair) for name in ours if name in theirs for pair in paired(ours[name], theirs[name])]
    if not pairs:
        print("no recording is in both files, or no word is", file=sys.stderr)
        return 1
    words = [sum(len(side[name]) for name in ours if name in theirs) for side in (ours, theirs)]
    starts = [abs(a["start"] - b["start"]) for _, a, b in pairs]
    facts = {
        "words": len(pairs),
        "of": words,
        "start": spread(starts),
        "end": spread([abs(a["end"] - b["end"]) for _, a, b in pairs]),
    }
    print(json.dumps(facts))
    for name, a, b in sorted(pairs, key=lambda p: -abs(p[1]["start"] - p[2]["start"]))[: args.worst]:
        print(f"{name}: {a['word']!r} {a['start']:.2f}-{a['end']:.2f} and {b['start']:.2f}-{b['end']:.2f}")
    close = sum(d <= WITHIN_S + EPSILON_S for d in starts) / len(starts)
    good = statistics.median(starts) <= MEDIAN_S + EPSILON_S and close >= SHARE
    return int(args.check and not good)


def paired(ours: list[Word], theirs: list[Word]) -> Iterator[tuple[Word, Word]]:
    """Words that stand at one place of both transcripts."""
    left, right = ([w for w in words if plain(w["word"])] for words in (ours, theirs))
    keys = [[plain(w["word"]) for w in words] for words in (left, right)]
    for block in difflib.SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks():
        yield from zip(
            left[block.a : block.a + block.size], right[block.b : block.b + block.size], strict=True
        )


def plain(word: str) -> str:
    """Letters and digits alone, in lower case."""
    return "".join(c for c in word.casefold() if unicodedata.category(c)[0] in "LN")


def spread(differences: list[float]) -> dict[str, Any]:
    """Median, 95th percentile and largest in ms, and the share within 120 ms in percent."""
    ordered = sorted(differences)
    within = sum(d <= WITHIN_S + EPSILON_S for d in ordered) / len(ordered)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {
        "median_ms": round(1000 * statistics.median(ordered), 1), "p95_ms": round(1000 * p95, 1),
        "max_ms": round(1000 * ordered[-1], 1), "within_120_ms": round(100 * within, 2),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
