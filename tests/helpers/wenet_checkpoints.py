"""WeNet model folders with made-up weights, and what WeNet's own code computed with them.

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
import yaml

GOLDEN = Path(__file__).parents[1] / "golden" / "wenet"
NAMES = tuple(sorted(path.stem for path in GOLDEN.glob("*.json")))
UNITS = ("<blank>", "<unk>", "<sos/eos>", *"abcdefgh", "▁")


@dataclass(frozen=True)
class Golden:
    """One configuration: train.yaml, tensor shapes, and the results on three utterances.

    `cases[i]` holds the n-best of WeNet's prefix beam (`nbest`, `ctc`, `times`) and, under `fused`,
    the scores of its attention rescoring for several weights.
    """

    name: str
    train: dict[str, Any]
    shapes: dict[str, list[int]]
    frames: list[int]
    cmvn: dict[str, Any] | None
    cases: list[dict[str, Any]]
    log_probs: list[torch.Tensor]

    def features(self, row: int) -> torch.Tensor:
        """(T, 16) input of utterance `row`."""
        random = np.random.RandomState(zlib.crc32(f"{self.name}/{row}".encode()))
        shape = (self.frames[row], self.train["dataset_conf"]["fbank_conf"]["num_mel_bins"])
        return torch.from_numpy(random.standard_normal(shape).astype(np.float32) * 2 + 1)


@cache
def golden(name: str) -> Golden:
    """The golden results called `name`."""
    stored = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        log_probs = [torch.from_numpy(arrays[f"log_probs_{i}"]) for i in range(len(stored["frames"]))]
    return Golden(name, log_probs=log_probs, **stored)


def weight(name: str, shape: list[int]) -> torch.Tensor:
    """The made-up tensor called `name`, from a generator seeded by its name."""
    random = np.random.RandomState(zlib.crc32(name.encode()))
    values = random.standard_normal(shape).astype(np.float32)
    if name.endswith("running_var"):
        values = 0.5 + values * values
    elif name.endswith("weight") and len(shape) == 1:
        values = 1 + 0.1 * values
    elif len(shape) < 2:
        values = 0.1 * values
    else:
        gain = 3.0 if "ctc_lo" in name or "output_layer" in name else 1.0
        values = values * gain / math.sqrt(np.prod(shape[1:]))
    return torch.from_numpy(np.asarray(values, np.float32))


def state_of(case: Golden) -> dict[str, torch.Tensor]:
    """The state dict that WeNet would have saved."""
    state = {k: weight(k, shape) for k, shape in case.shapes.items() if "global_cmvn" not in k}
    state["encoder.embed.pos_enc.pe"] = torch.zeros(1, 4, 16)
    if case.cmvn is not None:
        count = case.cmvn["frame_num"]
        mean = np.array(case.cmvn["mean_stat"]) / count
        variance = np.array(case.cmvn["var_stat"]) / count - mean**2
        state["encoder.global_cmvn.mean"] = torch.from_numpy(mean).float()
        state["encoder.global_cmvn.istd"] = torch.from_numpy(variance**-0.5).float()
    return state


def write_wenet(
    folder: Path, name: str, changes: dict[str, Any] | None = None, cmvn_in_weights: bool = False
) -> Path:
    """Write the folder of a golden configuration; `changes` replace top-level keys of train.yaml."""
    case = golden(name)
    folder.mkdir(parents=True, exist_ok=True)
    train = {**case.train, **(changes or {})}
    (folder / "train.yaml").write_text(yaml.safe_dump(train), "utf-8")
    (folder / "units.txt").write_text("".join(f"{s} {i}\n" for i, s in enumerate(UNITS)), "utf-8")
    state = state_of(case)
    if not cmvn_in_weights:
        state = {k: v for k, v in state.items() if "global_cmvn" not in k}
    torch.save(state, folder / "final.pt")
    if case.cmvn is not None and not cmvn_in_weights:
        (folder / "global_cmvn").write_text(_statistics(case), "utf-8")
    return folder


def _statistics(case: Golden) -> str:
    stats = case.cmvn or {}
    if case.train["cmvn_conf"]["is_json_cmvn"]:
        return json.dumps(stats)
    sums, squares = (" ".join(map(repr, stats[key])) for key in ("mean_stat", "var_stat"))
    return f" [\n  {sums} {stats['frame_num']}\n  {squares} 0 ]\n"
