"""The detectors on real speech with known pauses, and silero against the package's own network."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers.joined_speech import RATE, joined
from oasr.audio import vad_silero
from oasr.audio.vad_silero import SileroScorer
from oasr.audio.windows import Planning
from oasr.errors import OptionsError

needs_silero = pytest.mark.skipif(
    find_spec("silero_vad") is None or find_spec("onnxruntime") is None,
    reason="needs the extra vad: pip install '.[vad]'",
)
DETECTORS = ["energy", pytest.param("silero", marks=needs_silero)]


@pytest.mark.parametrize("vad", DETECTORS)
def test_utterances_are_found_and_pauses_are_left_out(demo_manifest, vad):
    samples, said = joined(demo_manifest, (1.5, 0.8, 5.0))
    planner = Planning(vad, 30.0).planner(RATE)
    windows = planner.add(samples) + planner.finish()
    regions = [(r.start / RATE, r.end / RATE) for r in planner.speech]
    for one in said:
        mine = [(a, b) for a, b in regions if a < one.end and b > one.start]
        assert mine, one.id
        # The clips begin and end with a moment of room.
        assert mine[0][0] - one.start < 0.7 and one.end - mine[-1][1] < 0.9, one.id
        assert mine[0][0] > one.start - 0.2 and mine[-1][1] < one.end + 0.25, one.id
    # What the windows cover is the speech, and little of the long pauses.
    decoded = sum(len(window.samples) for window in windows) / RATE
    assert decoded < len(samples) / RATE - 2 * (5.0 - 1.0)


@pytest.mark.parametrize("vad", DETECTORS)
def test_noise_without_speech_has_no_regions(vad):
    noise = np.random.default_rng(1).normal(0, 0.05, 20 * RATE).astype(np.float32)
    planner = Planning(vad, 30.0).planner(RATE)
    assert planner.add(noise) + planner.finish() == [] and planner.speech == []


def package_scores(samples: np.ndarray) -> np.ndarray:
    """The other network file of the package, which takes 32 ms at a time and keeps its state outside."""
    import onnxruntime

    folder = Path(find_spec("silero_vad").origin).parent / "data"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "silero_vad.onnx"), options)
    state, context, scores = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32), []
    for begin in range(0, len(samples), 512):
        frame = np.zeros((1, 512), np.float32)
        frame[0, : len(samples[begin : begin + 512])] = samples[begin : begin + 512]
        seen = np.concatenate([context, frame], axis=1)
        score, state = session.run(None, {"input": seen, "state": state, "sr": np.array(16000, np.int64)})
        context = frame[:, -64:]
        scores.append(float(score[0, 0]))
    return np.array(scores)


def package_scores_at_8_khz(samples: np.ndarray) -> np.ndarray:
    """The TorchScript network of the package, which keeps its state and context inside."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = torch.jit.load(Path(find_spec("silero_vad").origin).parent / "data" / "silero_vad.jit")
    padded = np.pad(samples, (0, -len(samples) % 256)).reshape(-1, 256)
    with torch.no_grad():
        return np.array([float(network(torch.from_numpy(frame), 8000)) for frame in padded])


@needs_silero
@pytest.mark.parametrize(("rate", "reference"), [(RATE, package_scores), (8000, package_scores_at_8_khz)])
def test_silero_scores_are_those_of_the_package_whatever_the_pieces(demo_manifest, rate, reference):
    samples = joined(demo_manifest, (0.5,))[0][: 12 * RATE + 100 : RATE // rate]
    expected = reference(samples)
    for size in (10**9, 70001, 512 * 128, 5000):
        scorer = SileroScorer(rate)
        parts = [scorer.add(samples[i : i + size]) for i in range(0, len(samples), size)]
        found = np.concatenate([*parts, scorer.finish()])
        assert len(found) == len(expected)
        np.testing.assert_allclose(found, expected, atol=1e-4)
        if size == 10**9:
            whole = found
        np.testing.assert_array_equal(found, whole)


@needs_silero
def test_silero_leaves_torch_alone():
    """Importing the package would set torch to one thread, and load it."""
    code = (
        "import sys; from oasr.audio.vad_silero import SileroScorer; SileroScorer(16000); "
        "print(sorted({'torch', 'silero_vad'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]" and done.stderr == ""


def test_silero_at_another_rate_or_without_its_packages_says_what_to_do(monkeypatch):
    with pytest.raises(OptionsError, match="silero hears 16000 or 8000 Hz, this model takes 22050 Hz"):
        SileroScorer(22050)
    monkeypatch.setattr(vad_silero, "find_spec", lambda name: None)
    vad_silero._session.cache_clear()
    with pytest.raises(OptionsError, match=r"silero-vad and onnxruntime: pip install .*\[vad\]'"):
        SileroScorer(16000)


@needs_silero
def test_an_old_or_broken_package_is_named(monkeypatch, tmp_path):
    class Spec:
        origin = str(tmp_path / "silero_vad" / "__init__.py")

    monkeypatch.setattr(vad_silero, "find_spec", lambda name: Spec)
    vad_silero._session.cache_clear()
    with pytest.raises(OptionsError, match=r"silero_vad_16k_sequence.onnx.*6\.2\.2"):
        SileroScorer(16000)
    (tmp_path / "silero_vad" / "data").mkdir(parents=True)
    (tmp_path / "silero_vad" / "data" / "silero_vad_16k_sequence.onnx").write_bytes(b"no network")
    with pytest.raises(OptionsError, match="cannot be loaded"):
        SileroScorer(16000)
