"""`--vad silero`: the network of the package `silero-vad`, run by ONNX Runtime.

Of the forms in which the package brings its network, this takes the ONNX ones: over whole sequences at 16
kHz, frame by frame at 8 kHz, where there is no other. The package itself is not imported: that would set
torch to one thread for the whole process, and its TorchScript form has a loader that torch has deprecated.
ONNX Runtime computes on the thread that calls, which is the reader's, and not on the cores that the model
uses; a call takes many frames, so that nothing is left to gain from batches over files. Scores are the same
bits however the frames are divided.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from oasr.errors import OptionsError
from oasr.reinstall import pip_install

_FRAME_S, _CONTEXT_S = 0.032, 0.004
"""What one score stands for, and what the network sees of the frame before it."""
# A call has a cost of its own, and takes memory by the number of its frames.
_LEAST_FRAMES, _MOST_FRAMES = 128, 1024


class SileroScorer:
    """SpeechScorer: the probability of speech in each 32 ms."""

    def __init__(self, sample_rate: int) -> None:
        """OptionsError at another rate than 8 or 16 kHz, and when the packages are not there."""
        network = _NETWORKS.get(sample_rate)
        if network is None:
            raise OptionsError(
                f"vad: silero hears {' or '.join(map(str, _NETWORKS))} Hz, this model takes "
                f"{sample_rate} Hz: choose energy or pauses"
            )
        self.hop = round(_FRAME_S * sample_rate)
        self._probabilities: Callable[[np.ndarray], np.ndarray] = network()
        self._rest = np.zeros(0, np.float32)
        self._context = np.zeros(round(_CONTEXT_S * sample_rate), np.float32)

    def add(self, samples: np.ndarray) -> np.ndarray:
        """See SpeechScorer."""
        self._rest = np.concatenate([self._rest, samples]) if len(self._rest) else samples
        frames = len(self._rest) // self.hop
        if frames < _LEAST_FRAMES:
            return np.zeros(0, np.float32)
        ready, self._rest = np.split(self._rest, [frames * self.hop])
        return self._scores(ready.reshape(frames, self.hop))

    def finish(self) -> np.ndarray:
        """See SpeechScorer; the last frame is filled up with silence."""
        frames = -(-len(self._rest) // self.hop)
        filled = np.zeros((frames, self.hop), np.float32)
        filled.reshape(-1)[: len(self._rest)] = self._rest
        self._rest = self._rest[:0]
        return self._scores(filled)

    def _scores(self, frames: np.ndarray) -> np.ndarray:
        """(n, hop) frames that follow those before → (n,) probabilities."""
        found, context = [np.zeros(0, np.float32)], len(self._context)
        for begin in range(0, len(frames), _MOST_FRAMES):
            block = frames[begin : begin + _MOST_FRAMES]
            seen = np.empty((len(block), context + self.hop), np.float32)
            seen[:, context:] = block
            seen[0, :context] = self._context
            seen[1:, :context] = block[:-1, -context:]
            # A copy, since a view would keep the whole block in memory.
            self._context = block[-1, -context:].copy()
            found.append(self._probabilities(seen))
        return np.concatenate(found)


class _Sequences:
    """The network at 16 kHz: (n, 576) frames with their context → (n,) probabilities, in one call."""

    def __init__(self) -> None:
        self._session = _session("silero_vad_16k_sequence.onnx")
        self._hidden = self._cell = np.zeros((1, 1, 128), np.float32)

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        scores, self._hidden, self._cell = self._session.run(
            ["speech_probs", "hn", "cn"], {"input": seen, "h": self._hidden, "c": self._cell}
        )
        return scores.reshape(-1)


class _Frames:
    """The network at 8 kHz: (n, 288) frames with their context → (n,) probabilities, a call each."""

    def __init__(self) -> None:
        self._session = _session("silero_vad.onnx")
        self._state = np.zeros((2, 1, 128), np.float32)
        self._rate = np.array(8000, np.int64)

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        scores = np.empty(len(seen), np.float32)
        for i in range(len(seen)):
            score, self._state = self._session.run(
                ["output", "stateN"], {"input": seen[i : i + 1], "state": self._state, "sr": self._rate}
            )
            scores[i] = score[0, 0]
        return scores


_NETWORKS: dict[int, type[_Sequences] | type[_Frames]] = {16000: _Sequences, 8000: _Frames}


@lru_cache(maxsize=2)
def _session(name: str) -> Any:
    """A network of the package, loaded once; any number of threads may run it.

    Raises:
        OptionsError: a package is missing or too old; says what to install.
    """
    package = find_spec("silero_vad")
    if package is None or package.origin is None or find_spec("onnxruntime") is None:
        raise OptionsError(
            f"vad: silero needs the packages silero-vad and onnxruntime: {pip_install('vad')}; "
            "energy and pauses need neither"
        )
    path = Path(package.origin).parent / "data" / name
    if not path.is_file():
        raise OptionsError(
            f"vad: expected {path} in the package silero-vad, found none (versions from 6.2.2 on have it): "
            f"{pip_install('vad')}"
        )
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Errors alone: warnings go to standard error, which belongs to the command line.
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # ONNX Runtime has no base class for its errors
        raise OptionsError(
            f"vad: {path} cannot be loaded ({error}); reinstall it: {pip_install('vad')}"
        ) from error
