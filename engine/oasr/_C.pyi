"""Contract of the compiled module (csrc/): what each binding takes and gives.

A submodule of the extension is an attribute, not an importable module, hence the classes.
"""

import numpy as np
from numpy.typing import NDArray

class segmentation:
    @staticmethod
    def plan_windows(samples: NDArray[np.float32], sample_rate: int, limit: int) -> list[tuple[int, int]]: ...
