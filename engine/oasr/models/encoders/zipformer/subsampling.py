"""Features → frames of the first stack, at half the rate: three convolutions and a ConvNeXt block."""

from __future__ import annotations

from torch import Tensor, nn

from oasr.models.encoders.zipformer.basics import BiasNorm, swoosh_l, swoosh_r
from oasr.models.layers.linear import Linear
from oasr.models.layers.mask import valid_frames
from oasr.models.zipformer_config import ZipformerConfig


class ConvNext(nn.Module):
    """x + narrow(swoosh(widen(depthwise 7 × 7))), over (B, channels, T, F)."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.widen = Linear(channels, inner)
        self.narrow = Linear(inner, channels)

    def forward(self, x: Tensor) -> Tensor:
        """The convolution reads three frames and bands beyond each, zero outside."""
        inner = self.widen(self.depthwise(x).movedim(1, -1))
        return x + self.narrow(swoosh_l(inner)).movedim(-1, 1)


class ZipformerSubsampling(nn.Module):
    """(B, T, n_mels) → (B, (T - 7) // 2, width of the first stack)."""

    def __init__(self, config: ZipformerConfig) -> None:
        super().__init__()
        first, second, third = config.channels
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(1, first, 3, padding=(0, 1)),
                nn.Conv2d(first, second, 3, stride=2),
                nn.Conv2d(second, third, 3, stride=(1, 2)),
            ]
        )
        self.block = ConvNext(third, config.inner_channels)
        width = config.stacks[0].width
        self.out = Linear(third * bands_out(config.fbank.n_mels), width)
        self.norm = BiasNorm(width)

    def lengths_out(self, lengths: Tensor) -> Tensor:
        """(B,) frames that come out."""
        # Of T frames the convolutions leave T - 2, then (T - 3) // 2, then two fewer.
        return (lengths - 7).div(2, rounding_mode="floor").clamp_min(0)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Features of at least 9 frames and (B,) valid ones → frames in the model's dtype, and valid ones."""
        x = features[:, None].to(next(self.convs.parameters()).dtype)
        for conv in self.convs:
            x = swoosh_r(conv(x))
        lengths = self.lengths_out(lengths)
        # The convolutions so far saw only frames inside a row; the block looks over its end.
        keep = valid_frames(lengths, x.shape[2], x.device)
        if keep is not None:
            x = x.masked_fill(~keep[:, None, :, None], 0.0)
        x = self.block(x).transpose(1, 2).flatten(2)
        return self.norm(self.out(x)), lengths


def bands_out(n_mels: int) -> int:
    """Bands that the convolutions leave of `n_mels`."""
    # The first convolution pads the bands and keeps them all, the two others have stride 2.
    return ((n_mels - 1) // 2 - 1) // 2
