"""icefall folders with made-up weights, and what icefall's own code computed with them.

`tests/golden/README.md` says how the golden files came about.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

GOLDEN = Path(__file__).parents[1] / "golden" / "icefall"
NAMES = tuple(sorted(path.stem for path in GOLDEN.glob("*.json")))
TOKENS = ("<blk>", "<sos/eos>", "<unk>", "▁the", "▁a", "▁", *"abcdes")


@dataclass(frozen=True)
class Golden:
    """One configuration: icefall's settings, tensor shapes, and the log-probabilities of three inputs."""

    name: str
    settings: dict[str, Any]
    shapes: dict[str, list[int]]
    frames: list[int]
    log_probs: list[torch.Tensor]

    def features(self, row: int) -> torch.Tensor:
        """(T, 80) input number `row`."""
        random = np.random.RandomState(zlib.crc32(f"{self.name}/{row}".encode()))
        return torch.from_numpy(random.standard_normal((self.frames[row], 80)).astype(np.float32) * 2 - 3)


@cache
def golden(name: str) -> Golden:
    """The golden results called `name`."""
    stored = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        log_probs = [torch.from_numpy(arrays[f"log_probs_{i}"]) for i in range(len(stored["frames"]))]
    return Golden(name, log_probs=log_probs, **stored)


def weight(name: str, shape: list[int]) -> torch.Tensor:
    """The made-up tensor called `name`, from a generator seeded by its name."""
    values = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
    if name.endswith("bypass_scale"):
        values = 0.5 + 0.2 * values
    elif name.endswith(("downsample.bias", "downsample_output.bias")):
        values = 0.5 * values
    elif len(shape) < 2 or name.endswith("chunkwise_conv_scale"):
        values = 0.2 * values
    else:
        gain = 3.0 if "ctc_output" in name else 1.0
        values = values * gain / math.sqrt(np.prod(shape[1:]))
    return torch.from_numpy(np.asarray(values, np.float32))


def state_of(case: Golden) -> dict[str, torch.Tensor]:
    """The tensors that icefall would have saved."""
    return {name: weight(name, shape) for name, shape in case.shapes.items()}


def write_icefall(folder: Path, name: str) -> Path:
    """Write the folder of a golden configuration as a recipe publishes it."""
    case, symbols = golden(name), folder / "data" / "lang_bpe_12"
    for place in (folder / "exp", symbols):
        place.mkdir(parents=True, exist_ok=True)
    torch.save({"model": state_of(case)}, folder / "exp" / "pretrained.pt")
    table = (*TOKENS, "#0", "#1")
    (symbols / "tokens.txt").write_text("".join(f"{s} {i}\n" for i, s in enumerate(table)), "utf-8")
    places = set(case.settings["pos_head_dim"])
    if places != {4}:
        stated = f"pos_head_dim: {case.settings['pos_head_dim']}\n"
        (folder / "exp" / "icefall.yaml").write_text(stated, "utf-8")
    return folder
