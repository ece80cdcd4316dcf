"""CTranslate2 folders: model.bin, config.json, tokenizer.json."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path

from oasr.checkpoints.contents import CheckpointContents, ResolvedCheckpoint, gather
from oasr.checkpoints.ctranslate2_file import CTranslate2File
from oasr.checkpoints.files import folder_of, read_json, require_tokenizer
from oasr.checkpoints.whisper_names import ctranslate2 as whisper_recipe
from oasr.checkpoints.whisper_tokens import whisper_tokens
from oasr.errors import CheckpointError
from oasr.models.whisper_config import WhisperConfig, WhisperDims

_GELU = 3  # CTranslate2's number of the exact GELU
_SPEC = b"WhisperSpec\0"


class CTranslate2Format:
    """Whisper as CTranslate2's converter writes it, float or quantised."""

    looks_for = "model.bin of CTranslate2"

    def specificity(self, path: Path) -> int:
        """30 when model.bin opens with CTranslate2's version number and a spec name, else 0."""
        binary = path / "model.bin" if path.is_dir() else path
        if binary.suffix != ".bin" or not binary.is_file():
            return 0
        with binary.open("rb") as stream:
            head = stream.read(6)
            name = stream.read(int.from_bytes(head[4:6], "little")) if len(head) == 6 else b""
        version = int.from_bytes(head[:4], "little")
        return 30 if 0 < version < 256 and name.endswith(b"Spec\0") else 0

    def files(self, path: Path) -> Mapping[str, Path]:
        """The weights, and what lies beside them."""
        folder = folder_of(path)
        names = {"weights": "model.bin", "config": "config.json", "tokenizer": "tokenizer.json"}
        found = {role: folder / name for role, name in names.items() if (folder / name).is_file()}
        return found if path.is_dir() else {**found, "weights": path}

    def read(self, checkpoint: ResolvedCheckpoint) -> CheckpointContents:
        """Index model.bin and read the configuration beside it."""
        stored = CTranslate2File(checkpoint.files["weights"])
        if stored.spec != "WhisperSpec":
            raise CheckpointError(f"{stored.path}: expected a WhisperSpec, found a {stored.spec}")
        folder = folder_of(checkpoint.path)
        dims = _dims(stored)
        tokenizer = require_tokenizer(folder)
        config = read_json(folder / "config.json", required=False)
        tokens = whisper_tokens(tokenizer, dims.vocab_size, {}, config)
        names = [*stored.variables, *stored.aliases]
        # Read by name where they are needed; they fill no parameter.
        settings = [n for n, v in stored.variables.items() if not v.shape or n.endswith("_scale")]
        return CheckpointContents(
            architecture="whisper", config=WhisperConfig(dims, tokens), tokenizer=tokenizer,
            **gather(whisper_recipe(dims), names, stored.tensor, [*settings, *stored.aliases]),
        )  # fmt: skip


def _dims(stored: CTranslate2File) -> WhisperDims:
    width, n_mels, _ = _shape(stored, "encoder/conv1/weight", 3)
    vocab, _ = _shape(stored, "decoder/embeddings/weight", 2)
    for side in ("encoder", "decoder"):
        if stored.scalar(f"{side}/activation") not in (None, _GELU):
            raise CheckpointError(f"{stored.path}: {side}/activation: expected GELU, found another one")
    return WhisperDims(
        n_mels=n_mels, vocab_size=vocab, width=width,
        encoder_layers=_layers(stored, "encoder"),
        # A file may leave them out; all published sizes have heads of 64.
        encoder_heads=stored.scalar("encoder/num_heads") or width // 64,
        encoder_ffn=_shape(stored, "encoder/layer_0/ffn/linear_0/weight", 2)[0],
        encoder_positions=_shape(stored, "encoder/position_encodings/encodings", 2)[0],
        decoder_layers=_layers(stored, "decoder"),
        decoder_heads=stored.scalar("decoder/num_heads") or width // 64,
        decoder_ffn=_shape(stored, "decoder/layer_0/ffn/linear_0/weight", 2)[0],
        decoder_positions=_shape(stored, "decoder/position_encodings/encodings", 2)[0],
    )  # fmt: skip


def _shape(stored: CTranslate2File, name: str, rank: int) -> tuple[int, ...]:
    shape = stored.shape(name)
    if len(shape) != rank:
        raise CheckpointError(f"{stored.path}: {name}: expected {rank} dimensions, found {list(shape)}")
    return shape


def _layers(stored: CTranslate2File, side: str) -> int:
    return next(i for i in count() if f"{side}/layer_{i}/ffn/linear_0/weight" not in stored.variables)
