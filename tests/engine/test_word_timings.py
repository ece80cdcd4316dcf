"""Word times of whole recordings: the same in any batch, in seconds of the recording, around known pauses."""

from __future__ import annotations

import difflib
import json
import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile
from oasr import DecodingOptions, Engine, EngineConfig, Utterance
from oasr.audio.waveform import read_waveforms
from oasr.kernels import fixed16

RATE = 16000
WORDS = DecodingOptions(word_timestamps=True)
pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def demo(demo_manifest):
    listed = [json.loads(line) for line in demo_manifest.read_text().splitlines()]
    return [Utterance(r["id"], str(demo_manifest.parent / r["audio"]), text=r["text"]) for r in listed]


def run(rows, options=WORDS, **config):
    with Engine(EngineConfig(**{"model": "tiny.en", "device": "cpu", **config})) as engine:
        return {output.request_id: output for output in engine.transcribe(rows, options)}


def check_words(output, start_s: float = 0.0) -> None:
    """What holds for the words of any recording."""
    at, end_s = 0, start_s + output.duration_s
    for word in output.words:
        at = output.text.index(word.word, at) + len(word.word)
        assert start_s <= word.start < word.end <= end_s + 1e-9 and 0 <= word.confidence <= 1
    assert "".join(word.word for word in output.words) == "".join(output.text.split())
    assert all(a.start <= b.start and a.end <= b.end for a, b in pairwise(output.words))
    assert len(output.timestamps) == len(output.tokens[0])
    assert all(start_s <= a < b <= end_s + 1e-9 for a, b in output.timestamps)


@pytest.mark.skipif(not fixed16.supports("cpu"), reason="int16 kernels need x86-64 with AVX2")
@pytest.mark.parametrize("window", ["full", "auto"])
def test_every_bit_of_a_rows_words_is_its_own(demo, window) -> None:
    config = {"dtype": "int16", "decode_options": {"window": window}}
    rows = demo[: 4 if window == "full" else 6]
    alone = run(rows, max_batch_size=1, **config)
    together = run(random.Random(3).sample(rows, len(rows)), max_batch_size=4, **config)
    plain = run(rows, None, max_batch_size=5, **config)
    for key, output in alone.items():
        check_words(output)
        assert together[key].words == output.words and together[key].timestamps == output.timestamps
        # Asking for words changes nothing else.
        assert plain[key].words is None
        for name in ("text", "tokens", "scores", "confidence", "finish_reason"):
            assert getattr(together[key], name) == getattr(output, name) == getattr(plain[key], name)


@dataclass
class Piece:
    """One clip in a made-up recording; times in its seconds."""

    text: str
    start: float
    end: float


def recording(demo, gaps: list[float], noise_db: float = -200.0) -> tuple[np.ndarray, list[Piece]]:
    """Demo clips, cut to their speech, behind pauses of known lengths."""
    parts, pieces, at = [], [], 0
    for gap, row in zip(gaps, demo, strict=False):
        samples = read_waveforms(row, RATE)[0][1].samples
        loud = np.flatnonzero(np.abs(samples) > 0.03 * np.abs(samples).max())
        samples = samples[loud[0] : loud[-1] + 1]
        begin = at + round(gap * RATE)
        parts += [np.zeros(begin - at, np.float32), samples]
        at = begin + len(samples)
        pieces.append(Piece(row.text, begin / RATE, at / RATE))
    whole = np.concatenate([*parts, np.zeros(2 * RATE, np.float32)])
    noise = np.random.default_rng(0).normal(0, 10 ** (noise_db / 20), len(whole))
    return (whole + noise).astype(np.float32), pieces


def check_against_pieces(words, pieces: list[Piece], slack_s: float) -> None:
    """Every word lies in one piece, and the first and last word of each piece stand at its ends."""
    inside: list[list] = [[] for _ in pieces]
    for word in words:
        overlaps = [min(word.end, p.end + slack_s) - max(word.start, p.start - slack_s) for p in pieces]
        best = int(np.argmax(overlaps))
        assert overlaps[best] == pytest.approx(word.end - word.start), f"{word} reaches into a pause"
        inside[best].append(word)
    whole = [
        (found, piece)
        for found, piece in zip(inside, pieces, strict=True)
        if abs(len(found) - len(piece.text.split())) <= 2
    ]
    assert len(whole) >= 6  # of eight: the small model may lose a sentence, the clock may not
    for found, piece in whole:
        assert abs(found[0].start - piece.start) <= slack_s, (found[0], piece)
        assert abs(found[-1].end - piece.end) <= slack_s, (found[-1], piece)


@pytest.mark.parametrize(("noise_db", "window"), [(-200.0, "full"), (-60.0, "auto")])
def test_words_stop_at_known_pauses_in_every_window(
    demo, tmp_path: Path, noise_db: float, window: str
) -> None:
    """Over a minute at 44.1 kHz, from an offset: windows, resampling and offset together."""
    import soxr

    samples, pieces = recording(demo, [4.0, 1.5, 2.0, 3.0, 1.5, 2.5, 1.0, 2.0], noise_db)
    path = tmp_path / "long.flac"
    soundfile.write(path, soxr.resample(samples, RATE, 44100), 44100)
    row = Utterance("long", str(path), offset=1.25)
    (output,) = run([row], decode_options={"window": window}).values()
    assert len(output.segments) >= 2
    check_words(output, start_s=1.25)
    check_against_pieces(output.words, pieces, 0.35)
    for start, end, text in output.segments:  # the words of a window lie in it
        inside = [w for w in output.words if start <= (w.start + w.end) / 2 < end]
        assert " ".join(w.word for w in inside) == text
        assert all(start <= w.start and w.end <= end for w in inside)


def test_a_stretch_without_speech_has_no_words(demo) -> None:
    """Three windows, the middle one silent: an empty list of words does not make the others unknown."""
    speech = read_waveforms(demo[0], RATE)[0][1].samples
    parts = [speech, np.zeros(60 * RATE, np.float32), speech]
    (output,) = run([Utterance("u", samples=np.concatenate(parts), sample_rate=RATE)]).values()
    check_words(output)
    assert output.words[0].start < 1 and output.words[-1].start > 60
    assert [w.word for w in output.words] == output.text.split()


def test_known_gaps_in_shared_recordings(shared_speech) -> None:
    listed = [json.loads(line) for line in (shared_speech / "awkward" / "awkward.jsonl").open()]
    row = next(r for r in listed if r["id"] == "long_gap_flac")
    (output,) = run([Utterance("u", str(shared_speech / "awkward" / row["audio"]))]).values()
    check_words(output)
    first, second = row["segments"]
    for word in output.words:
        segment = first if word.start < 30 else second
        assert segment["start"] - 0.1 <= word.start and word.end <= segment["end"] + 0.1
    assert output.words[0].start == pytest.approx(first["start"], abs=0.3)


def test_words_of_a_chapter_fall_into_its_sentences(shared_speech) -> None:
    """90 s out of the middle of a joined chapter, whose sentences begin at known times."""
    listed = [json.loads(line) for line in (shared_speech / "long" / "long.jsonl").open()]
    row = next(r for r in listed if r["id"] == "libri-19-227")
    start_s, end_s = row["segments"][10]["start"], row["segments"][16]["end"]
    part = Utterance(
        "u", str(shared_speech / "long" / row["audio"]), offset=start_s, duration=end_s - start_s
    )
    (output,) = run([part]).values()
    check_words(output, start_s)
    spoken = [(word, s) for s in row["segments"][10:17] for word in s["text"].lower().split()]
    heard = [word.word.lower().strip(".,;:!?\"'-") for word in output.words]
    matcher = difflib.SequenceMatcher(None, [word for word, _ in spoken], heard, autojunk=False)
    pairs = [(a + i, b + i) for a, b, size in matcher.get_matching_blocks() for i in range(size)]
    assert len(pairs) > 0.75 * len(spoken)
    outside = 0
    for a, b in pairs:
        word, segment = output.words[b], spoken[a][1]
        outside += not segment["start"] - 0.2 <= (word.start + word.end) / 2 <= segment["end"] + 0.2
    assert outside <= 0.01 * len(pairs)
