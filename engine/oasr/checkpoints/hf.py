"""Hugging Face snapshots: config.json with a model_type, safetensors or PyTorch weights, sharded or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.contents import CheckpointContents, ResolvedCheckpoint
from oasr.checkpoints.files import folder_of, load_torch, read_json, tensors_of
from oasr.errors import CheckpointError, OptionsError
from oasr.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

Converter = Callable[["Snapshot"], CheckpointContents]

MODEL_TYPES: Registry[Converter] = Registry(
    "Hugging Face model_type",
    "oasr.hf_models",
    {
        "hubert": "oasr.checkpoints.hf_ctc:convert",
        "parakeet_ctc": "oasr.checkpoints.hf_ctc:convert",
        "wav2vec2": "oasr.checkpoints.hf_ctc:convert",
        "wav2vec2-bert": "oasr.checkpoints.hf_ctc:convert",
        "wav2vec2-conformer": "oasr.checkpoints.hf_ctc:convert",
        "wavlm": "oasr.checkpoints.hf_ctc:convert",
        "whisper": "oasr.checkpoints.hf_whisper:convert",
    },
)
"""`model_type` of config.json → what turns a snapshot of it into our names."""

# In order of preference.
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


class HuggingFaceFormat:
    """A snapshot as `from_pretrained` reads it."""

    looks_for = f"config.json with a model_type, and one of {', '.join(_WEIGHTS)}"

    def specificity(self, path: Path) -> int:
        """30 where config.json names a model_type and weights lie beside it, else 0."""
        if _weights_of(path) is None:
            return 0
        try:
            return 30 if isinstance(read_json(folder_of(path) / "config.json").get("model_type"), str) else 0
        except CheckpointError:
            # Another format may know a folder whose config.json is none.
            return 0

    def files(self, path: Path) -> Mapping[str, Path]:
        """The weights or their index, and what lies beside them."""
        names = {
            "config": "config.json",
            "generation_config": "generation_config.json",
            "tokenizer": "tokenizer.json",
        }
        folder = folder_of(path)
        found = {role: folder / name for role, name in names.items() if (folder / name).is_file()}
        weights = _weights_of(path)
        return found if weights is None else {**found, "weights": weights}

    def read(self, checkpoint: ResolvedCheckpoint) -> CheckpointContents:
        """Dispatch on model_type."""
        snapshot = Snapshot(checkpoint.path)
        try:
            convert = MODEL_TYPES.get(str(snapshot.config.get("model_type")))
        except OptionsError as error:
            raise CheckpointError(f"{snapshot.folder / 'config.json'}: {error}") from error
        return convert(snapshot)


class Snapshot:
    """Configuration and tensors of one folder.

    Attributes:
        folder: where everything lies.
        config, generation: config.json and generation_config.json ({} when absent).
        names: stored tensor names.
    """

    def __init__(self, path: Path) -> None:
        """Read the configuration and index the weights of `path`, a folder or the weights in it.

        Tensors are read on demand.
        """
        weights = _weights_of(path)
        if weights is None:
            raise CheckpointError(f"{path}: no weights found (looked for {', '.join(_WEIGHTS)})")
        self.folder = weights.parent
        self.config = read_json(self.folder / "config.json")
        _refuse_quantized(self.config, self.folder / "config.json")
        self.generation = read_json(self.folder / "generation_config.json", required=False)
        self._readers: dict[str, Callable[[], Tensor]] = {}
        files = shards_of(weights) if weights.name.endswith(".index.json") else [weights]
        for file in files:
            self._readers |= _safetensors(file) if file.suffix == ".safetensors" else _pytorch(file)

    @property
    def names(self) -> list[str]:
        """Names of all stored tensors."""
        return list(self._readers)

    def tensor(self, name: str) -> Tensor:
        """One stored tensor in its stored dtype."""
        return self._readers[name]()


def _refuse_quantized(config: Mapping[str, Any], path: Path) -> None:
    stated = config.get("quantization_config")
    if stated:
        method = stated.get("quant_method") if isinstance(stated, Mapping) else stated
        raise CheckpointError(
            f"{path}: quantization_config ({method}): quantised weights cannot be read; use the model that "
            "they were made from, or save them again after dequantize() of transformers. Where the weights "
            "are floating-point numbers, delete the key"
        )


def _weights_of(path: Path) -> Path | None:
    if path.is_file():
        return path if path.name in _WEIGHTS else None
    return next((path / name for name in _WEIGHTS if (path / name).is_file()), None)


def shards_of(index: Path) -> list[Path]:
    """The weight files that an index names, sorted by name.

    Raises:
        CheckpointError: a malformed index, a name that leaves the folder, or an absent file.
    """
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index}: expected a non-empty weight_map")
    names = sorted(set(map(str, weight_map.values())))
    for name in names:
        # An index comes from anywhere: it must not lead out of its folder.
        if Path(name).name != name:
            raise CheckpointError(f"{index}: shard {name!r} is not a plain file name")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{index}: {len(missing)} of {len(names)} shards are absent: {', '.join(missing)}"
        )
    return [index.parent / name for name in names]


def _safetensors(file: Path) -> dict[str, Callable[[], Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        # Stays open: it maps the file, and tensors are read when asked for.
        stored: Any = safe_open(str(file), framework="pt", device="cpu")
        return {name: partial(stored.get_tensor, name) for name in stored.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{file}: not a readable safetensors file ({error})") from error


def _pytorch(file: Path) -> dict[str, Callable[[], Tensor]]:
    stored = tensors_of(load_torch(file), file)
    return {name: partial(stored.__getitem__, name) for name in stored}
