"""What is fuzzed: a valid file of `tests/fuzz/seeds`, what damages it, and the reader it is given to."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from fuzzing import mutate

SEEDS = Path(__file__).resolve().parents[2] / "tests" / "fuzz" / "seeds"
FOUND = "found"
"""Folder beside valid files: inputs that once broke something, as `name of the file~what it was`."""

CHECKPOINTS = ("ctranslate2", "ctranslate2-int8", "whisper", "whisper-bin", "openai", "wav2vec2", "wenet")


@dataclass(frozen=True)
class Target:
    """One kind of file.

    Attributes:
        patterns: of the valid files, below SEEDS. The whole folder of a file is put beside it.
        mutators: one of them makes an input of a valid file.
        read: reads the folder with the input, whose path is given; an OasrError is a good answer.
        quick: how many new inputs the test suite takes; fewer where one takes long.
    """

    name: str
    patterns: tuple[str, ...]
    mutators: tuple[mutate.Mutator, ...]
    read: Callable[[Path], None]
    quick: int = 100

    def seeds(self) -> list[Path]:
        """The valid files."""
        return list(_seeds(self.patterns))

    def kept(self) -> list[tuple[Path, Path]]:
        """(input, valid file in whose place it is read) of all inputs that once broke something."""
        return [(found, seed) for seed in self.seeds() for found in _kept(seed)]

    def mutant(self, number: int) -> tuple[Path, bytes]:
        """The valid file that input `number` is made of, and the input; the same ones at every call."""
        random = Random(f"{self.name}/{number}")
        seed = random.choice(self.seeds())
        kept = _kept(seed)
        source = random.choice(kept) if kept and random.random() < 0.1 else seed
        return seed, random.choice(self.mutators)(source.read_bytes(), random)


@cache
def _seeds(patterns: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(sorted(path for pattern in patterns for path in SEEDS.glob(pattern) if path.is_file()))


@cache
def _kept(seed: Path) -> tuple[Path, ...]:
    return tuple(sorted((seed.parent / FOUND).glob(f"{seed.name}~*")))


class Workplace:
    """Copies of the seeds' folders, in each of which one file at a time is another one."""

    def __init__(self, root: Path) -> None:
        """`root` is an empty folder."""
        self.root = root

    def put(self, seed: Path, data: bytes) -> Path:
        """`data` in the place of `seed`, with everything that lies beside it."""
        folder = self.root / seed.parent.name
        if not folder.exists():
            shutil.copytree(seed.parent, folder, ignore=shutil.ignore_patterns(FOUND))
        path = folder / seed.name
        path.write_bytes(data)
        return path

    def restore(self, seed: Path) -> None:
        """The valid file again."""
        shutil.copyfile(seed, self.root / seed.parent.name / seed.name)


def _checkpoint(path: Path) -> None:
    import torch
    from oasr.checkpoints import load_model

    model = load_model(str(path.parent), torch.device("cpu"), "float32")
    # Its tables are made when the first clip comes. What else goes wrong there becomes an error row.
    with contextlib.suppress(RuntimeError, ValueError, IndexError):
        samples = torch.zeros(1, model.frontend.window_samples(1600))
        model.frontend(samples, torch.tensor([1600]))


def _pieces(path: Path) -> None:
    from oasr.tokenizers.sentencepiece import SentencePieceModel, SentencePieceTokenizer

    model = SentencePieceModel(path)
    tokenizer = SentencePieceTokenizer(model)
    tokenizer.decode(tokenizer.encode("the quick fox é🎙"))
    model.split("the lazy dog")


def _symbols(path: Path) -> None:
    from oasr.checkpoints.icefall_tokens import read_tokenizer
    from oasr.tokenizers.symbol_table import SymbolTableTokenizer

    tokenizer = SymbolTableTokenizer.from_file(path)
    tokenizer.decode([*tokenizer.encode("abc the"), 0, 5])
    if path.name == "tokens.txt":
        read_tokenizer(path.parent, 12)


def _cmvn(path: Path) -> None:
    from oasr.checkpoints.wenet_cmvn import read_cmvn

    read_cmvn(path)


def _audio(path: Path) -> None:
    from oasr.audio.pieces import PieceReader
    from oasr.audio.probe import probe
    from oasr.audio.windows import Planning
    from oasr.errors import AudioError
    from oasr.types import Utterance

    # As rows of a list ask for it: the whole, every channel, a stretch.
    for channel, offset in (("mix", 0.0), ("split", 0.0), (0, 0.01)):
        row = Utterance(id="x", audio=str(path), index=0, offset=offset, channel=channel)
        for read in (
            probe,
            lambda row: PieceReader(16000, Planning("pauses", 30.0)).read(row, lambda parts: None),
        ):
            try:
                read(row)
            except AudioError as error:
                check_message(error)


def _manifest(path: Path) -> None:
    from oasr.manifest.opening import InputOptions, open_inputs
    from oasr.output.jsonl import decode_line, encode_line
    from oasr.output.rows import failure_row
    from oasr.types import RowFailure

    given = str(path.parent if path.parent.name == "kaldi" else path)
    for allow_pipes in (False, True):
        rows = open_inputs([given], InputOptions(allow_pipes=allow_pipes))
        rows.check_ids()
        listed = list(rows)
        if len(listed) != rows.count():
            raise AssertionError(f"{rows.count()} rows are counted, {len(listed)} come out")
        for row in listed:
            if isinstance(row, RowFailure):
                decode_line(encode_line(failure_row(row.row, row.id, row.stage, row.message)))
                check_message(row.message)


def check_message(message: object) -> None:
    """Raise AssertionError for a message that nobody can read."""
    text = str(message)
    if not text.strip() or len(text) > 20_000:
        raise AssertionError(f"a message of {len(text)} characters: {text[:200]!r}")


def _each(name: str, folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for folder in folders)


_JSON = (mutate.json_file,)
_SUFFIXES = ("mp3", "m4a", "aac", "ogg", "webm", "mka", "amr", "flv", "ts", "aiff", "au", "caf")
TARGETS = {
    target.name: target
    for target in (
        Target("model_bin", _each("model.bin", CHECKPOINTS), (mutate.damage,), _checkpoint),
        Target("safetensors", _each("model.safetensors", CHECKPOINTS), (mutate.safetensors,), _checkpoint),
        Target(
            "torch_file",
            ("*/*.pt", "*/pytorch_model.bin"),
            (mutate.torch_file,),
            _checkpoint,
            quick=20,
        ),
        Target("tokenizer_json", _each("tokenizer.json", CHECKPOINTS), _JSON, _checkpoint, quick=20),
        Target(
            "config_json",
            (*_each("*config.json", CHECKPOINTS), "wav2vec2/vocab.json"),
            _JSON,
            _checkpoint,
            quick=20,
        ),
        Target("train_yaml", ("wenet/train.yaml",), (mutate.yaml,), _checkpoint, quick=20),
        Target("pieces", ("pieces/bpe.model",), (mutate.damage,), _pieces),
        Target("symbols", ("wenet/units.txt", "icefall/tokens.txt"), (mutate.text,), _symbols),
        Target("cmvn", ("cmvn/sums.*",), (mutate.text, mutate.json_file), _cmvn),
        Target("wav", ("audio/*.wav", "audio/x.rf64", "audio/x.w64"), (mutate.damage,), _audio),
        Target("flac", ("audio/*.flac",), (mutate.damage,), _audio, quick=40),
        Target(
            "compressed",
            tuple(f"audio/*.{suffix}" for suffix in _SUFFIXES),
            (mutate.damage,),
            _audio,
            quick=40,
        ),
        Target("jsonl", ("manifests/*.jsonl",), (mutate.json_lines,), _manifest),
        Target(
            "kaldi",
            tuple(f"kaldi/{name}" for name in ("wav.scp", "segments", "text", "utt2*", "reco2*")),
            (mutate.text,),
            _manifest,
        ),
    )
}


def kept_inputs(target: Target) -> Iterator[tuple[str, Path, bytes]]:
    """(name, valid file, input) of the valid files and of what is kept."""
    for seed in target.seeds():
        yield seed.name, seed, seed.read_bytes()
    for found, seed in target.kept():
        yield found.name, seed, found.read_bytes()
