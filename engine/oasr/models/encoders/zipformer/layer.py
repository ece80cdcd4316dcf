"""One layer: three feed-forward modules, three uses of one attention, two convolutions."""

from __future__ import annotations

from torch import Tensor, nn

from oasr.models.encoders.zipformer.attention import AttentionWeights, GatedValues, WeightedValues
from oasr.models.encoders.zipformer.basics import BiasNorm, Bypass, swoosh_l
from oasr.models.encoders.zipformer.convolution import ZipformerConv
from oasr.models.layers.feed_forward import FeedForward
from oasr.models.layers.frames import Frames
from oasr.models.zipformer_config import StackConfig


class ZipformerLayer(nn.Module):
    """A layer. The attention weights come from its input, before anything is added to it."""

    def __init__(self, config: StackConfig, position_width: int, causal: bool) -> None:
        super().__init__()
        self.weights = AttentionWeights(config, position_width)
        self.gated = GatedValues(config)
        self.attns = nn.ModuleList(WeightedValues(config) for _ in range(2))
        self.convs = nn.ModuleList(ZipformerConv(config.width, config.kernel, causal) for _ in range(2))
        self.ffns = nn.ModuleList(FeedForward(config.width, inner, swoosh_l) for inner in config.ffn)
        self.middle = Bypass(config.width)
        self.norm = BiasNorm(config.width)
        self.bypass = Bypass(config.width)

    def forward(self, x: Tensor, frames: Frames) -> Tensor:
        """(B, T, width) → (B, T, width)."""
        before, weights = x, self.weights(x, frames)
        x = x + self.ffns[0](x)
        x = x + self.gated(x, weights[:, 0])
        x = x + self.attns[0](x, weights)
        x = x + self.convs[0](x, frames)
        x = x + self.ffns[1](x)
        x = self.middle(before, x)
        x = x + self.attns[1](x, weights)
        x = x + self.convs[1](x, frames)
        x = x + self.ffns[2](x)
        return self.bypass(before, self.norm(x))
