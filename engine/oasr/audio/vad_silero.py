"""`--vad silero`: the network of the package `silero-vad`, run by ONNX Runtime.

Of the three forms in which the package brings its network, this takes the ONNX one over whole sequences. The
package itself is not imported: that would set torch to one thread for the whole process, and its TorchScript
form takes a call for each 32 ms and a loader that torch has deprecated. ONNX Runtime computes on the thread
that calls, which is the reader's, and not on the cores that the model uses; a call takes many frames, so that
nothing is left to gain from batches over files. Scores are the same bits however the frames are divided.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from oasr.errors import OptionsError

RATE = 16000
_CONTEXT = 64
"""Samples of the frame before that the network sees in front of each frame."""
_STATE = (1, 1, 128)
_LEAST_FRAMES, _MOST_FRAMES = 128, 1024
_MODEL = "silero_vad_16k_sequence.onnx"
_INSTALL = "pip install 'oasr[vad]'"


class SileroScorer:
    """SpeechScorer: the probability of speech in each 32 ms."""

    hop = 512

    def __init__(self, sample_rate: int) -> None:
        """OptionsError at another rate than 16 kHz, and when the packages are not there."""
        if sample_rate != RATE:
            raise OptionsError(
                f"vad: silero hears {RATE} Hz, this model takes {sample_rate} Hz: choose energy or pauses"
            )
        self._session = _session()
        self._rest = np.zeros(0, np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)
        self._hidden = self._cell = np.zeros(_STATE, np.float32)

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
        """(n, 512) frames that follow those before → (n,) probabilities."""
        found = [np.zeros(0, np.float32)]
        for begin in range(0, len(frames), _MOST_FRAMES):
            block = frames[begin : begin + _MOST_FRAMES]
            seen = np.empty((len(block), _CONTEXT + self.hop), np.float32)
            seen[:, _CONTEXT:] = block
            seen[0, :_CONTEXT] = self._context
            seen[1:, :_CONTEXT] = block[:-1, -_CONTEXT:]
            self._context = block[-1, -_CONTEXT:].copy()
            scores, self._hidden, self._cell = self._session.run(
                ["speech_probs", "hn", "cn"], {"input": seen, "h": self._hidden, "c": self._cell}
            )
            found.append(scores.reshape(-1))
        return np.concatenate(found)


@lru_cache(maxsize=1)
def _session() -> Any:
    """The network, loaded once; any number of threads may run it.

    Raises:
        OptionsError: a package is missing or too old; says what to install.
    """
    package = find_spec("silero_vad")
    if package is None or package.origin is None or find_spec("onnxruntime") is None:
        raise OptionsError(
            f"vad: silero needs the packages silero-vad and onnxruntime: {_INSTALL}; "
            "energy and pauses need neither"
        )
    path = Path(package.origin).parent / "data" / _MODEL
    if not path.is_file():
        raise OptionsError(
            f"vad: expected {path} in the package silero-vad, found none (versions from 6.2.2 on have it): "
            f"{_INSTALL}"
        )
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # ONNX Runtime has no base class for its errors
        raise OptionsError(f"vad: {path} cannot be loaded ({error}); reinstall it: {_INSTALL}") from error
