"""`partial.jsonl`: what is known of recordings that are not finished, for as long as a run lasts."""

from __future__ import annotations

from pathlib import Path

from oasr.output.append_file import AppendFile
from oasr.output.jsonl import encode_line
from oasr.output.name_book import NameBook
from oasr.types import RequestOutput

PARTIAL_NAME = "partial.jsonl"


class PartialFile:
    """Lines `{"id", "start", "end", "text"}`, times in seconds of the recording; made for the first one."""

    def __init__(self, folder: Path, names: NameBook) -> None:
        """Nothing is opened yet; `names` knows which files of the folder are ours."""
        self._folder, self._names = folder, names
        self._log: AppendFile | None = None
        self._unfinished: set[str] = set()

    def append(self, utterance_id: str, output: RequestOutput) -> None:
        """Write the segments of one partial output.

        Raises:
            OutputError: a file of that name is there and is not oasr's.
            OSError: it cannot be written.
        """
        if self._log is None:
            self._log = AppendFile(self._names.reserve(PARTIAL_NAME))
            self._log.truncate(0)  # what a run that was killed has left
        self._unfinished.add(utterance_id)
        for start, end, text in output.segments:
            record = {"id": utterance_id, "start": round(start, 3), "end": round(end, 3), "text": text}
            self._log.append(encode_line(record))

    def note_done(self, utterance_id: str) -> None:
        """The row of this recording is in results.jsonl."""
        self._unfinished.discard(utterance_id)

    def finish(self) -> None:
        """The run is over: the file goes, unless it was stopped in the middle of a recording."""
        self.close()
        # That of a killed run goes too, when this one had no long recording that would have replaced it.
        if not self._unfinished and self._names.owns(PARTIAL_NAME):
            (self._folder / PARTIAL_NAME).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        if self._log is not None:
            self._log.close()
            self._log = None
