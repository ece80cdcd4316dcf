"""icefall's Zipformer with a CTC layer: pretrained.pt or a checkpoint of the training, and its symbols."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.contents import CheckpointContents, ResolvedCheckpoint, gather
from oasr.checkpoints.files import folder_of, load_torch, tensors_of
from oasr.checkpoints.icefall_config import read_shapes
from oasr.checkpoints.icefall_names import HEAD, left_over, model_recipe
from oasr.checkpoints.icefall_tokens import read_tokenizer, symbol_folders
from oasr.checkpoints.sections import Section, read_yaml
from oasr.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

_EPOCH = re.compile(r"(epoch|iter|checkpoint)-(\d+)(?:-avg-(\d+))?\.pt")
_POINTWISE = re.compile(r"encoder_embed\.convnext\.pointwise_conv[12]\.weight")
_STATED = "icefall.yaml"


class IcefallFormat:
    """A recipe's folder as published: weights in it or in exp/, symbols beside them or in data/lang_*/."""

    looks_for = (
        "pretrained.pt or epoch-N.pt, also in exp/, with tokens.txt or bpe.model, also in data/lang_*/"
    )

    def specificity(self, path: Path) -> int:
        """20 where weights under icefall's names and symbols are found, else 0."""
        weights = _weights_of(path)
        # With train.yaml beside them they are WeNet's.
        if weights is None or (folder_of(weights) / "train.yaml").is_file():
            return 0
        return 20 if symbol_folders(_root_of(weights)) else 0

    def files(self, path: Path) -> Mapping[str, Path]:
        """The weights, and the file that states what shapes leave open."""
        weights = _weights_of(path)
        stated = None if weights is None else folder_of(weights) / _STATED
        found = {"weights": weights, "stated": stated}
        return {role: file for role, file in found.items() if file is not None and file.is_file()}

    def read(self, checkpoint: ResolvedCheckpoint) -> CheckpointContents:
        """Read the shapes and index the weights."""
        path = checkpoint.files["weights"]
        stored, stated = _contents(path)
        if f"{HEAD}.weight" not in stored:
            raise CheckpointError(
                f"{path}: holds no {HEAD}.weight, and so no CTC layer to decode with; a transducer alone "
                "is not enough (train.py --use-ctc 1 adds one)"
            )
        if "stated" in checkpoint.files:
            stated |= _overrides(checkpoint.files["stated"])
        config = read_shapes(stored, str(path), stated)

        def tensor(name: str) -> Tensor:
            # A convolution over single points is a linear map.
            return stored[name].flatten(1) if _POINTWISE.fullmatch(name) else stored[name]

        return CheckpointContents(
            architecture="zipformer",
            config=config,
            tokenizer=read_tokenizer(_root_of(path), config.vocab_size),
            **gather(model_recipe(config), stored, tensor, left_over(stored)),
        )


def _weights_of(path: Path) -> Path | None:
    """The named `.pt` file; else pretrained.pt or the latest epoch, in a folder or in its exp/."""
    if path.is_file():
        known = path.name == "pretrained.pt" or _EPOCH.fullmatch(path.name)
        return path if known else None
    for folder in (path, path / "exp"):
        if (folder / "pretrained.pt").is_file():
            return folder / "pretrained.pt"
        saved = [(_rank(m), p) for p in folder.glob("*.pt") if (m := _EPOCH.fullmatch(p.name))]
        if saved:
            return max(saved)[1]
    return None


def _rank(name: re.Match[str]) -> tuple[bool, int, int]:
    """Higher for what is to be taken: numbers of iterations say nothing beside those of epochs."""
    return name[1] == "epoch", int(name[2]), int(name[3] or 0)


def _root_of(weights: Path) -> Path:
    """The folder that holds data/ beside exp/."""
    return weights.parent.parent if weights.parent.name == "exp" else weights.parent


def _contents(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors under "model", and what a checkpoint of the training says about its options."""
    import torch

    # A training's own checkpoint holds the paths it was started with; they are data, like strings.
    with torch.serialization.safe_globals([pathlib.PosixPath, pathlib.PurePosixPath]):
        stored = load_torch(path)
    model = stored.get("model") if isinstance(stored, dict) else None
    if not isinstance(model, Mapping):
        raise CheckpointError(f"{path}: expected named tensors under the key model, as icefall saves them")
    stated = {key: stored[key] for key in ("pos_head_dim", "feature_dim") if key in stored}
    return tensors_of(model, path), stated


def _overrides(path: Path) -> dict[str, Any]:
    section = Section(read_yaml(path), str(path))
    stated: dict[str, Any] = {}
    if "pos_head_dim" in section:
        stated["pos_head_dim"] = section.raw("pos_head_dim")
    if "feature_dim" in section:
        stated["feature_dim"] = section.integer("feature_dim", least=7)
    section.ignore("pos_head_dim", "feature_dim")
    section.finish()
    return stated
