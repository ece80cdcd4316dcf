"""The feature extractor of a Hugging Face snapshot as a front end of ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.checkpoints.files import read_json
from oasr.checkpoints.sections import Section
from oasr.errors import CheckpointError
from oasr.features.kaldi_fbank import FbankConfig
from oasr.features.nemo_logmel import NemoConfig, NemoLogMel
from oasr.features.raw_waveform import RawWaveform
from oasr.features.stacked_fbank import StackedFbank

if TYPE_CHECKING:
    from oasr.models.interfaces import Frontend

_PLAIN, _SEPARATE = "preprocessor_config.json", "processor_config.json"
_NO_MATTER = (
    # Padding, masks and names: a row is computed as if it were alone, so none of them shows.
    "feature_extractor_type", "processor_class", "padding_side", "padding_value", "return_attention_mask",
    "feature_size", "dither",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SnapshotFrontend:
    """A front end and its clock.

    Attributes:
        frame_shift_ms: milliseconds from one of its frames to the next, before stacking.
        stack: frames that it makes one.
    """

    frontend: Frontend
    frame_shift_ms: float
    stack: int = 1


def read_frontend(folder: Path, default: str) -> SnapshotFrontend:
    """The front end that the snapshot in `folder` describes.

    Args:
        folder: the snapshot.
        default: class of the extractor where the file does not name one, as old files do not.

    Raises:
        CheckpointError: no description, an extractor of another kind, or a setting that would change the
            features and is not known.
    """
    values, path = _description(folder)
    kind = values.get("feature_extractor_type") or default
    readers = {
        "Wav2Vec2FeatureExtractor": _raw,
        "SeamlessM4TFeatureExtractor": _stacked,
        "ParakeetFeatureExtractor": _nemo,
    }
    if kind not in readers:
        raise CheckpointError(
            f"{path}: feature_extractor_type: expected one of {', '.join(readers)}, found {kind!r}"
        )
    section = Section(values, str(path))
    section.ignore(*_NO_MATTER)
    found = readers[str(kind)](section)
    section.finish()
    return found


def _description(folder: Path) -> tuple[dict[str, Any], Path]:
    """The extractor's settings, in a file of their own or (since transformers 5) in the processor's."""
    plain, processor = folder / _PLAIN, folder / _SEPARATE
    if plain.is_file():
        return read_json(plain), plain
    nested = read_json(processor, required=False).get("feature_extractor")
    if not isinstance(nested, dict):
        raise CheckpointError(
            f"{folder}: does not describe its features; put {_PLAIN} of the original model (or a "
            f"{_SEPARATE} with feature_extractor in it) beside the weights"
        )
    return nested, processor


def _raw(section: Section) -> SnapshotFrontend:
    rate = section.integer("sampling_rate", 16000)
    return SnapshotFrontend(RawWaveform(rate, section.flag("do_normalize", True)), 1000 / rate)


def _stacked(section: Section) -> SnapshotFrontend:
    stack = section.integer("stride", 2)
    # 25 ms and 10 ms at 16 kHz are fixed in the extractor's code.
    section.expect(sampling_rate=16000)
    config = FbankConfig(n_mels=section.integer("num_mel_bins", 80))
    return SnapshotFrontend(StackedFbank(config, stack), config.frame_shift_ms, stack)


def _nemo(section: Section) -> SnapshotFrontend:
    # An explicit null means that there is none.
    none = section.states("preemphasis") and section.raw("preemphasis") is None
    config = NemoConfig(
        sample_rate=section.integer("sampling_rate", 16000),
        n_mels=section.integer("feature_size", 80),
        n_fft=section.integer("n_fft", 512),
        window=section.integer("win_length", 400),
        hop=section.integer("hop_length", 160),
        preemphasis=0.0 if none else section.number("preemphasis", 0.97),
    )
    return SnapshotFrontend(NemoLogMel(config), 1000 * config.hop / config.sample_rate)
