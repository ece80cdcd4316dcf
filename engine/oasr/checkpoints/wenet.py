"""WeNet's model folders: train.yaml, final.pt, units.txt, and what lies beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.contents import CheckpointContents, ResolvedCheckpoint, gather
from oasr.checkpoints.files import folder_of, load_torch, tensors_of
from oasr.checkpoints.sections import Section, read_yaml
from oasr.checkpoints.wenet_cmvn import read_cmvn
from oasr.checkpoints.wenet_config import WenetConfig, read_config
from oasr.checkpoints.wenet_names import model_recipe
from oasr.checkpoints.wenet_state import WenetState
from oasr.errors import CheckpointError
from oasr.features.cmvn import GlobalCmvn
from oasr.models.conformer_config import ConformerConfig

if TYPE_CHECKING:
    from torch import Tensor

    from oasr.tokenizers.base import Tokenizer

_TABLES = ("units.txt", "tokens.txt", "lang_char.txt", "words.txt")
_CMVN_TENSORS = ("encoder.global_cmvn.mean", "encoder.global_cmvn.istd")


class WenetFormat:
    """A folder as WeNet's training leaves it, or its `.pt` file by name."""

    looks_for = "train.yaml beside final.pt (or one .pt file), with units.txt or a sentencepiece model"

    def specificity(self, path: Path) -> int:
        """20 where train.yaml and weights lie together, else 0."""
        return 20 if _weights_of(path) is not None and (folder_of(path) / "train.yaml").is_file() else 0

    def files(self, path: Path) -> Mapping[str, Path]:
        """Configuration, weights, statistics, symbol table and sentencepiece model."""
        folder, weights = folder_of(path), _weights_of(path)
        models = sorted(folder.glob("*.model"))
        found = {
            "config": folder / "train.yaml",
            "weights": weights,
            "cmvn": folder / "global_cmvn",
            "units": next((folder / name for name in _TABLES if (folder / name).is_file()), None),
            "pieces": models[0] if len(models) == 1 else None,
        }
        return {role: file for role, file in found.items() if file is not None and file.is_file()}

    def read(self, checkpoint: ResolvedCheckpoint) -> CheckpointContents:
        """Read the configuration and index the weights."""
        files = checkpoint.files
        train, path = read_yaml(files["config"]), files["weights"]
        stored = tensors_of(load_torch(path), path)
        labels = _rows(stored, "ctc.ctc_lo.weight", path)
        config = read_config(train, labels, str(files["config"]))
        state = WenetState(stored, config.without_bias)
        conv = config.encoder.conv
        if conv is not None and not conv.layer_norm:
            state.fold_norms(conv.norm_eps)
        # A bitransformer stores two decoders, a transformer one without a prefix.
        left = "decoder.left_decoder." if "decoder.left_decoder.embed.0.weight" in stored else "decoder."
        recipe = model_recipe(config.encoder, config.decoder, left)
        return CheckpointContents(
            architecture="conformer",
            config=_config(config, stored, files),
            tokenizer=_tokenizer(train, checkpoint.path, files, labels),
            **gather(recipe, state.names, state.tensor, _left_out(state, config)),
        )


def _weights_of(path: Path) -> Path | None:
    """The named `.pt` file; in a folder final.pt, else the only one there."""
    if path.is_file():
        return path if path.suffix == ".pt" else None
    if (path / "final.pt").is_file():
        return path / "final.pt"
    found = sorted(path.glob("*.pt"))
    return found[0] if len(found) == 1 else None


def _rows(stored: Mapping[str, Tensor], name: str, path: Path) -> int:
    if name not in stored or stored[name].dim() != 2:
        raise CheckpointError(f"{path}: holds no {name} (a matrix); is this a WeNet model?")
    return int(stored[name].shape[0])


def _config(config: WenetConfig, stored: Mapping[str, Tensor], files: Mapping[str, Path]) -> ConformerConfig:
    cmvn: GlobalCmvn | None = None
    # The statistics inside the weights are those of the training, whatever file lies beside them.
    if all(name in stored for name in _CMVN_TENSORS):
        try:
            cmvn = GlobalCmvn(*(stored[name] for name in _CMVN_TENSORS))
        except ValueError as error:
            raise CheckpointError(f"{files['weights']}: {' and '.join(_CMVN_TENSORS)}: {error}") from error
    elif config.wants_cmvn and "cmvn" in files:
        cmvn = read_cmvn(files["cmvn"])
    elif config.wants_cmvn:
        raise CheckpointError(
            f"{files['config']}: features are normalised by global_cmvn, and neither the weights nor "
            f"{files['config'].parent / 'global_cmvn'} hold the statistics"
        )
    if cmvn is not None and cmvn.bins != config.fbank.n_mels:
        raise CheckpointError(
            f"{files['config']}: fbank_conf has {config.fbank.n_mels} mel bins, the statistics {cmvn.bins}"
        )
    return ConformerConfig(
        encoder=config.encoder,
        vocab_size=int(stored["ctc.ctc_lo.weight"].shape[0]),
        decoder=config.decoder,
        blank_id=config.blank_id,
        reverse_weight=config.reverse_weight,
        fbank=config.fbank,
        cmvn=cmvn,
    )


def _left_out(state: WenetState, config: WenetConfig) -> list[str]:
    """Stored names that are no loss: computed tables, and heads of stacks without layers."""
    idle = [] if config.decoder is None or config.decoder.right_layers else ["decoder.right_decoder."]
    idle += [] if config.encoder.pre_norm and config.encoder.final_norm else ["encoder.after_norm."]
    if config.decoder is not None and not config.decoder.pre_norm:
        idle += [f"decoder.{side}after_norm." for side in ("", "left_decoder.", "right_decoder.")]
    return state.unused + [name for name in state.names if name.startswith(tuple(idle))]


def _tokenizer(train: Mapping[str, Any], folder: Path, files: Mapping[str, Path], labels: int) -> Tokenizer:
    from oasr.tokenizers.sentencepiece import SentencePieceModel, SentencePieceTokenizer
    from oasr.tokenizers.symbol_table import SymbolTableTokenizer

    where = str(files["config"])
    kind = Section(train, where).text("tokenizer", "char")
    conf = Section(train, where).section("tokenizer_conf")
    if kind not in ("char", "bpe", "sentencepiece"):
        raise CheckpointError(f"{where}: tokenizer {kind!r}: expected char, bpe or sentencepiece")
    units = _beside(folder, conf.raw("symbol_table_path")) or files.get("units")
    pieces = _beside(folder, conf.raw("bpe_path") or conf.raw("model_path")) or files.get("pieces")
    model = SentencePieceModel(pieces) if pieces is not None and kind != "char" else None
    if kind == "sentencepiece" or units is None:
        if model is None:
            raise CheckpointError(
                f"{folder}: no symbols found; put units.txt ({', '.join(_TABLES)}) or the sentencepiece "
                "model beside train.yaml"
            )
        return SentencePieceTokenizer(model)
    tokenizer = SymbolTableTokenizer.from_file(units, conf.text("connect_symbol", ""), model)
    if tokenizer.vocab_size != labels:
        raise CheckpointError(
            f"{units}: expected symbols for the {labels} labels of the network, found labels up to "
            f"{tokenizer.vocab_size - 1}; is it the table of another model, or cut short?"
        )
    return tokenizer


def _beside(folder: Path, path: Any) -> Path | None:
    """The file that train.yaml names, looked for by its own name beside train.yaml."""
    if not isinstance(path, str) or not path:
        return None
    file = folder_of(folder) / Path(path).name
    # Not Path.is_file, which raises for a name that is too long or holds a NUL.
    return file if os.path.isfile(file) else None  # noqa: PTH113
