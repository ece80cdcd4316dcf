"""WeNet's `global_cmvn`: sums over a corpus, as JSON or as Kaldi's text matrix."""

from __future__ import annotations

import json
from pathlib import Path

from oasr.errors import CheckpointError
from oasr.features.cmvn import GlobalCmvn


def read_cmvn(path: Path) -> GlobalCmvn:
    """Statistics from either form; the first character tells which.

    JSON: `mean_stat` and `var_stat` (sums and sums of squares of each bin) and `frame_num`. Text:
    `[ sums count squares 0 ]`, what `compute-cmvn-stats --binary=false` writes.

    Raises:
        CheckpointError: unreadable, of another form, or with lists that do not match.
    """
    try:
        text = path.read_text("utf-8").strip()
        if text.startswith("{"):
            stats = json.loads(text)
            sums, squares, count = stats["mean_stat"], stats["var_stat"], stats["frame_num"]
        else:
            sums, squares, count = _matrix(text)
        if len(sums) != len(squares) or not sums or not count > 0:
            raise ValueError(f"{len(sums)} sums, {len(squares)} squares, {count} frames")
        return GlobalCmvn.from_sums([float(x) for x in sums], [float(x) for x in squares], float(count))
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: expected corpus statistics as JSON (mean_stat, var_stat, frame_num) or as a Kaldi "
            f"text matrix ({type(error).__name__}: {error})"
        ) from error


def _matrix(text: str) -> tuple[list[float], list[float], float]:
    parts = text.split()
    if parts[:1] != ["["] or parts[-1:] != ["]"] or len(parts) % 2 or len(parts) < 6:
        raise ValueError("no matrix of two rows in brackets")
    values = [float(x) for x in parts[1:-1]]
    # The second row ends with a 0 below the count.
    row = len(values) // 2
    return values[: row - 1], values[row : 2 * row - 1], values[row - 1]
