"""One timed pass of oasr, faster-whisper or transformers over a manifest, printed as one JSON line.

Run the two in turn, each with the Python that has it installed:

    python ci/peer_run.py oasr MANIFEST --model tiny.en [--option window=auto]
    python ci/peer_run.py faster-whisper MANIFEST --model FOLDER --compute-type int8
    python ci/peer_run.py transformers MANIFEST --model FOLDER --device cuda --batch-size 128

The clock runs from the first recording to the last text, after the model is loaded and has transcribed
one recording (on a GPU: the whole list once). Reading the audio is inside, except for transformers.
faster-whisper gets beam 1, no timestamps, no fallback temperatures, and the language. The passes of oasr
and transformers also print the word error rate; `--out` keeps the texts, and
`python ci/peer_run.py score MANIFEST --out FILE` scores a file of them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the oasr command sets it


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engine", choices=(*RUNS, "score"))
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--model", default="tiny.en")
    parser.add_argument("--compute-type", default="int8")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--option", action="append", default=[], metavar="K=V")
    parser.add_argument("--stride", type=int, default=1, help="take every N-th row")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--workers", type=int, default=2, help="reader threads of oasr")
    parser.add_argument("--repeat", type=int, default=1, help="passes in this process; the median is printed")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.manifest.read_text("utf-8").splitlines()][:: args.stride]
    if args.engine == "score":
        texts = [json.loads(line)["pred_text"] for line in args.out.read_text("utf-8").splitlines()]
        print(json.dumps({"wer": score(rows, texts)}))
        return
    texts, walls, facts = RUNS[args.engine](args, rows)
    audio_s = sum(row["duration"] for row in rows)
    wall = statistics.median(walls)
    facts |= {"model": args.model, "rows": len(rows), "audio_s": round(audio_s, 1), "wall_s": round(wall, 2)}
    facts |= {"rtfx": round(audio_s / wall, 2)}
    if args.out:
        lines = (json.dumps({"id": r["id"], "pred_text": t}) for r, t in zip(rows, texts, strict=True))
        args.out.write_text("\n".join(lines) + "\n", "utf-8")
    if args.engine != "faster-whisper":
        facts["wer"] = score(rows, texts)
    print(json.dumps(facts), flush=True)


def run_oasr(args: argparse.Namespace, rows: list[dict]) -> tuple[list[str], list[float], dict]:
    import torch
    from oasr import Engine, EngineConfig, Utterance

    options = dict(option.split("=", 1) for option in args.option)
    config = EngineConfig(
        args.model, args.device, args.dtype, max_batch_size=args.batch_size, workers=args.workers,
        threads=args.threads, decode_options=options,
    )  # fmt: skip
    listed = [
        Utterance(r["id"], str(args.manifest.parent / r["audio"]), language=r["language"]) for r in rows
    ]
    walls = []
    with Engine(config) as engine:
        list(engine.transcribe(listed[:1] if args.device == "cpu" else listed))
        for _ in range(args.repeat):
            start = time.perf_counter()
            texts = [output.text or "" for output in engine.transcribe(listed)]
            walls.append(time.perf_counter() - start)
        counters = {name: round(value, 1) for name, value in engine.executor.counters.seconds.items()}
        facts = {"engine": f"oasr {version('oasr')}", "torch": torch.__version__, "dtype": engine.dtype}
        return texts, walls, facts | {"options": options, "seconds": counters}


def run_faster_whisper(args: argparse.Namespace, rows: list[dict]) -> tuple[list[str], list[float], dict]:
    from faster_whisper import WhisperModel

    model = WhisperModel(args.model, args.device, compute_type=args.compute_type, cpu_threads=args.threads)

    def text_of(row: dict) -> str:
        segments, _ = model.transcribe(
            str(args.manifest.parent / row["audio"]), language=row["language"], beam_size=1, temperature=0,
            without_timestamps=True, condition_on_previous_text=False,
        )  # fmt: skip
        return "".join(segment.text for segment in segments).strip()

    text_of(rows[0])
    walls = []
    for _ in range(args.repeat):
        start = time.perf_counter()
        texts = [text_of(row) for row in rows]
        walls.append(time.perf_counter() - start)
    versions = f"faster-whisper {version('faster-whisper')}, ctranslate2 {version('ctranslate2')}"
    return texts, walls, {"engine": versions, "dtype": args.compute_type}


def run_transformers(args: argparse.Namespace, rows: list[dict]) -> tuple[list[str], list[float], dict]:
    """Greedy generate in batches over a local snapshot; the audio is read and resampled before the clock."""
    import torch
    from oasr import Utterance
    from oasr.audio.waveform import read_waveforms
    from transformers import PreTrainedTokenizerFast, WhisperFeatureExtractor, WhisperForConditionalGeneration
    from transformers.generation import GenerationMixin

    half = torch.float16 if args.dtype in ("auto", "float16") else torch.float32
    model = WhisperForConditionalGeneration.from_pretrained(args.model, dtype=half).to(args.device).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(Path(args.model) / "tokenizer.json"))
    extractor = WhisperFeatureExtractor()
    paths = (str(args.manifest.parent / row["audio"]) for row in rows)
    audio = [read_waveforms(Utterance(path, path), 16000)[0][1].samples for path in paths]
    names = ("<|startoftranscript|>", f"<|{rows[0]['language']}|>", "<|transcribe|>", "<|notimestamps|>")
    prompt = tokenizer.convert_tokens_to_ids(
        [n for n in names if tokenizer.convert_tokens_to_ids(n) is not None]
    )
    walls = []
    for _ in range(args.repeat + 1):
        start, texts = time.perf_counter(), []
        for k in range(0, len(audio), args.batch_size):
            batch = extractor(audio[k : k + args.batch_size], sampling_rate=16000, return_tensors="pt",
                              device=args.device).input_features.to(args.device, half)  # fmt: skip
            begin = torch.tensor([prompt] * len(batch), device=args.device)
            with torch.inference_mode():
                ids = GenerationMixin.generate(
                    model, batch, decoder_input_ids=begin, do_sample=False, num_beams=1, max_length=448
                )
            texts += tokenizer.batch_decode(ids[:, len(prompt) :], skip_special_tokens=True)
        walls.append(time.perf_counter() - start)
    return texts, walls[1:], {"engine": f"transformers {version('transformers')}", "dtype": str(half)}


RUNS = {"oasr": run_oasr, "faster-whisper": run_faster_whisper, "transformers": run_transformers}


def score(rows: list[dict], texts: list[str]) -> str:
    from oasr.scoring.wer import score_row

    scores = [score_row(r["text"], t, r["language"]) for r, t in zip(rows, texts, strict=True)]
    total = scores[0]
    for one in scores[1:]:
        total += one
    return total.describe()


if __name__ == "__main__":
    main()
