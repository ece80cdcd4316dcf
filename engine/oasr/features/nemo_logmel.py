"""NeMo's log-mel features (its AudioToMelSpectrogramPreprocessor), which Parakeet was trained on.

The signal is pre-emphasised as a whole (its first sample stays), framed around centres with zeros
beyond both ends, and windowed with a symmetric Hann window in the middle of the transform; energies
go through Slaney's filters and ln(x + 2^-24).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from oasr.features.limits import MEL_BINS, RATES, WINDOW_SAMPLES, check_sizes
from oasr.features.mel import slaney_filters
from oasr.features.windows import padded_samples

_FLOOR = 2.0**-24
_LEAST_DEVIATION = 1e-5


@dataclass(frozen=True, slots=True)
class NemoConfig:
    """What a checkpoint says about its features; sizes in samples.

    Attributes:
        normalize: bring each bin to mean 0 and variance 1 over the clip.
    """

    sample_rate: int = 16000
    n_mels: int = 80
    n_fft: int = 512
    window: int = 400
    hop: int = 160
    preemphasis: float = 0.97
    normalize: bool = True

    def __post_init__(self) -> None:
        """Raise CheckpointError for sizes that no front end has."""
        check_sizes(sample_rate=(self.sample_rate, RATES), n_mels=(self.n_mels, MEL_BINS))
        check_sizes(
            n_fft=(self.n_fft, WINDOW_SAMPLES),
            window=(self.window, (1, self.n_fft)),
            hop=(self.hop, WINDOW_SAMPLES),
        )


class NemoLogMel:
    """A Frontend: padded samples → log-mel energies; a clip of n samples has n // hop frames."""

    def __init__(self, config: NemoConfig) -> None:
        """`config` is the checkpoint's."""
        self.config = config
        self.sample_rate = config.sample_rate
        self._tables: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def window_samples(self, n_samples: int) -> int:
        """Padded samples of a clip."""
        return padded_samples(n_samples, self.sample_rate)

    def __call__(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `extract`. On a CPU row by row, so that a row's bits do not depend on the rows beside it."""
        if samples.device.type != "cpu" or len(samples) <= 1:
            return self.extract(samples, lengths)
        rows = [self.extract(samples[i : i + 1], lengths[i : i + 1]) for i in range(len(samples))]
        return torch.cat([features for features, _ in rows]), torch.cat([frames for _, frames in rows])

    def extract(self, samples: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) float32 samples, (B,) lengths → (B, T, n_mels), zero beyond each row, and (B,) frames."""
        frames = lengths.div(self.config.hop, rounding_mode="floor")
        out = samples.new_zeros((len(samples), samples.shape[1] // self.config.hop, self.config.n_mels))
        longest = int(frames.max())
        if longest:
            out[:, :longest] = self._logs(samples, lengths)[:, :longest]
        index = torch.arange(out.shape[1], device=out.device)
        valid = (index < frames.to(out.device)[:, None])[..., None]
        out = out.masked_fill_(~valid, 0.0)
        return (_standardised(out, valid) if self.config.normalize else out), frames

    def _logs(self, samples: Tensor, lengths: Tensor) -> Tensor:
        """(B, N) → (B, T, n_mels) log energies of the frames up to the end of the longest row."""
        config, longest = self.config, int(lengths.max())
        samples = samples[:, :longest]
        window, filters = self._on(samples.device)
        sharp = torch.cat([samples[:, :1], samples[:, 1:] - config.preemphasis * samples[:, :-1]], dim=1)
        # The sample behind a row's last one would otherwise hold an echo of it.
        beyond = torch.arange(longest, device=samples.device) >= lengths.to(samples.device)[:, None]
        spectrum = torch.stft(
            sharp.masked_fill(beyond, 0.0), config.n_fft, config.hop, config.window, window,
            center=True, pad_mode="constant", return_complex=True,
        )  # fmt: skip
        power = torch.view_as_real(spectrum).square().sum(-1).transpose(1, 2)
        return (power @ filters).add_(_FLOOR).log_()

    def _on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The analysis window and the filters on `device`, made once."""
        if device not in self._tables:
            config = self.config
            window = torch.hann_window(config.window, periodic=False, device=device)
            filters = slaney_filters(config.n_mels, config.n_fft, config.sample_rate).to(device)
            self._tables[device] = window, filters
        return self._tables[device]


def _standardised(features: Tensor, valid: Tensor) -> Tensor:
    """(B, T, F), zero where (B, T, 1) is not `valid` → each bin with mean 0 and deviation 1 over the clip."""
    count = valid.sum(1, keepdim=True)
    # Padding is zero and adds nothing; n - 1 below, as in NeMo.
    mean = features.sum(1, keepdim=True) / count.clamp_min(1)
    centred = (features - mean).masked_fill(~valid, 0.0)
    variance = centred.square().sum(1, keepdim=True) / (count - 1).clamp_min(1)
    return centred / (variance.sqrt() + _LEAST_DEVIATION)
