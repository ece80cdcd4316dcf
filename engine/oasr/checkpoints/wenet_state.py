"""The tensors of a WeNet checkpoint in the shapes that our modules take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.contents import require_float
from oasr.errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

_UNUSED = re.compile(
    # Position tables are computed; statistics are the front end's; the last two are remains of
    # options that were off.
    r".*\.pe|.*global_cmvn\..*|.*num_batches_tracked|.*concat_linear\..*|criterion_.*"
)
_NORM = re.compile(r"(?P<module>.*\.conv_module)\.norm\.(weight|bias|running_mean|running_var)")
_DEPTHWISE = re.compile(r"(?P<module>.*\.conv_module)\.depthwise_conv\.(?P<kind>weight|bias)")
_POINTWISE = re.compile(r".*\.conv_module\.pointwise_conv[12]\.weight")


class WenetState:
    """Stored tensors, with batch norms folded away and absent biases filled in.

    After training, a norm over batch statistics maps x to (x - mean) · s + b with
    s = weight / sqrt(variance + eps): an affine map of each channel, which the depthwise
    convolution before it takes in.
    """

    def __init__(self, stored: Mapping[str, Tensor], without_bias: tuple[tuple[str, str], ...]) -> None:
        """`without_bias` are (prefix, module) pairs whose linear maps have none."""
        self._stored = stored
        self._eps: float | None = None
        self._zeros = set(_absent_biases(stored, without_bias))

    def fold_norms(self, eps: float) -> None:
        """Fold the norms of all convolution modules; `eps` was added to their variances."""
        self._eps = eps

    @property
    def names(self) -> set[str]:
        """Everything that can be asked for, or that is left over."""
        folded = set() if self._eps is None else {n for n in self._stored if _NORM.fullmatch(n)}
        return (set(self._stored) - folded) | self._zeros

    @property
    def unused(self) -> list[str]:
        """Names that are left out on purpose."""
        return [name for name in self._stored if _UNUSED.fullmatch(name)]

    def tensor(self, name: str) -> Tensor:
        """The tensor that takes the place of `name`."""
        match = _DEPTHWISE.fullmatch(name)
        if match is not None and self._eps is not None:
            return self._folded(match["module"], match["kind"])
        value = self._plain(name)
        # A convolution over single frames is a linear map.
        return value.squeeze(-1) if _POINTWISE.fullmatch(name) else value

    def _plain(self, name: str) -> Tensor:
        if name in self._zeros:
            weight = self._stored[name.removesuffix("bias") + "weight"]
            return weight.new_zeros(weight.shape[0])
        return self._stored[name]

    def _folded(self, module: str, kind: str) -> Tensor:
        import torch

        names = [f"{module}.norm.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
        missing = [name for name in names if name not in self._stored]
        if missing:
            raise CheckpointError(f"the checkpoint lacks {missing[0]}, part of a batch norm")
        weight, bias, mean, variance = (require_float(n, self._stored[n]).double() for n in names)
        scale = weight / torch.sqrt(variance + (self._eps or 0.0))
        name = f"{module}.depthwise_conv.{kind}"
        own = require_float(name, self._plain(name)).double()
        folded = own * scale[:, None, None] if kind == "weight" else (own - mean) * scale + bias
        return folded.float()


def _absent_biases(stored: Mapping[str, Any], without_bias: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name in stored:
        module = name.removesuffix(".weight")
        listed = any(
            module.startswith(prefix) and module.endswith(f".{part}") for prefix, part in without_bias
        )
        if module != name and listed and f"{module}.bias" not in stored:
            yield f"{module}.bias"
