"""Where Ray Data gets its rows from. Imports Ray; nothing does so before a run asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import ray
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask


class RowSource(Datasource):
    """The windows of the Desk as a dataset: one block a window, read as Ray Data asks for them.

    Read lazily by one task, so that neither the object store nor the driver ever holds the list.
    """

    def __init__(self, desk: Any) -> None:
        """`desk`: the handle of the Desk."""
        super().__init__()
        self._desk = desk

    @property
    def supports_distributed_reads(self) -> bool:
        """False: the task runs beside the driver, where the Desk is."""
        return False

    def estimate_inmemory_data_size(self) -> int | None:
        """Nobody knows."""
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """The one task."""
        desk = self._desk

        def read() -> Iterator[pa.Table]:
            # When Ray repeats this task too: for a window that is written the Desk gives one without rows.
            number = 0
            while (rows := ray.get(desk.window.remote(number))) is not None:
                yield pa.table({"number": [number], "rows": pa.array([rows], pa.binary())})
                number += 1

        return [ReadTask(read, BlockMetadata(None, None, None, None))]
