"""`oasr` with an engine that reads the audio for real and hears `heard <id>` in all of it.

Imported by the fixtures, and run as a script where a test needs a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from oasr.errors import CapabilityError, OptionsError, RequestError
from oasr.types import DecodingOptions, RequestOutput, RowFailure, WordTiming

BATCH = 4
LANGUAGES = (None, "en", "de")


class FakeEngine:
    """Stands where `oasr.engine.Engine` does; finishes each batch of rows last row first.

    `pause_in`, a batch number, makes it write the file OASR_FAKE_MARK when that batch is in flight, and
    wait there until it is told to stop (for ever when OASR_FAKE_STUBBORN is set). With OASR_FAKE_UNTIMED it
    cannot time words. It returns two hypotheses at most.
    """

    def __init__(self, config: Any) -> None:
        if config.decode_method not in (None, "aed"):
            raise CapabilityError(f"this fake checkpoint cannot decode with {config.decode_method!r}")
        if unknown := set(config.decode_options) - {"window"}:
            raise OptionsError(f"unknown decode option {unknown}; valid: window")
        self.config = config
        self.device, self.dtype, self.sample_rate = "cpu", "float32", 16000
        self.model = SimpleNamespace(architecture="fake", checkpoint=None)
        self.strategy = SimpleNamespace(name="aed", validate_options=self._validate)
        self.pause_in = int(os.environ.get("OASR_FAKE_PAUSE_IN", "0"))
        self.heard: list[str] = []
        self.options: DecodingOptions | None = None
        self._stopping = False

    def __enter__(self) -> FakeEngine:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stop(self) -> None:
        self._stopping = True

    def stream(
        self,
        rows: Iterable[Any],
        options: Any = None,
        settings: Any = None,
        in_order: bool = False,
        partial: bool = False,
    ) -> Iterator[tuple[Any, RequestOutput]]:
        from oasr.audio.loader import AudioLoader

        self.options = options
        with AudioLoader(rows, settings) as loader:
            batch, number = [], 0
            for loaded in loader:
                batch.append(loaded)
                if len(batch) == BATCH:
                    number += 1
                    yield from self._finish(batch, number, in_order)
                    batch = []
                if self._stopping:
                    return
            yield from self._finish(batch, number + 1, in_order)

    def _finish(self, batch: list[Any], number: int, in_order: bool) -> Iterator[tuple[Any, RequestOutput]]:
        if number == self.pause_in:
            self._pause()
        for loaded in batch if in_order else reversed(batch):
            row = loaded.failure or loaded.utterance
            self.heard.append(row.id)
            yield row, self._output(row, loaded.waveform)

    def _pause(self) -> None:
        Path(os.environ["OASR_FAKE_MARK"]).touch()
        stubborn = bool(os.environ.get("OASR_FAKE_STUBBORN"))
        deadline = time.monotonic() + 240
        while (stubborn or not self._stopping) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _output(self, row: Any, waveform: Any) -> RequestOutput:
        if isinstance(row, RowFailure):
            return RequestOutput(
                row.id, error_stage=row.stage, error_message=row.message, finish_reason="error"
            )
        if row.language not in LANGUAGES:
            message = f"language {row.language!r} is unknown; known: en, de"
            return RequestOutput(
                row.id, error_stage="admission", error_message=message, finish_reason="error"
            )
        text = f"heard {row.id}"
        words = (
            (WordTiming("heard", 0.0, 0.5, 0.9),) if self.options and self.options.word_timestamps else None
        )
        return RequestOutput(
            row.id,
            text=text,
            scores=(-1.0, -2.0)[: self.options.n_best if self.options else 1],
            nbest_texts=(text, "hoard")[: self.options.n_best]
            if self.options and self.options.n_best > 1
            else (),
            words=words,
            confidence=0.5,
            finish_reason="stop",
            language=row.language or "en",
            duration_s=waveform.duration_s,
            segments=((0.0, waveform.duration_s, text),),
            warnings=waveform.warnings,
        )

    def _validate(self, options: DecodingOptions) -> None:
        if options.language not in LANGUAGES:
            raise RequestError(f"language {options.language!r} is unknown to this checkpoint; known: en, de")
        if options.word_timestamps and "OASR_FAKE_UNTIMED" in os.environ:
            raise RequestError("decode family 'aed' cannot time words offline; modes that work: none")
        if options.n_best > 2:
            raise RequestError(f"decode family 'aed' returns at most 2 hypotheses, not {options.n_best}")


def die_at(event: int, folder: str) -> None:
    """End this process by SIGKILL at the `event`-th change that it makes in `folder`.

    A change is a file opened, renamed or removed, or bytes written, of which half get there.
    """
    left, write = [event], os.write

    def one_more() -> bool:
        left[0] -= 1
        return left[0] <= 0

    def on_event(name: str, args: tuple[Any, ...]) -> None:
        changing = name in ("open", "os.rename", "os.remove", "os.truncate")
        if changing and str(args[0]).startswith(folder) and one_more():
            os.kill(os.getpid(), signal.SIGKILL)

    def torn_write(fd: int, data: Any) -> int:
        if str(Path(f"/proc/self/fd/{fd}").readlink()).startswith(folder) and one_more():
            write(fd, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(fd, data)

    sys.addaudithook(on_event)
    os.write = torn_write


def serve(*modules: str) -> None:
    """Run the commands that come as JSON lines, each in a fork of this process; answer with its exit status.

    What a command imports, `modules` too, is here already, so that one costs a tenth of a second.
    """
    common = ("numpy", "soundfile", "oasr.audio.loader", "oasr.manifest", "oasr.output.run_folder")
    for module in (*common, *modules):
        __import__(module)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            sys.argv[1:] = asked["args"]
            die_at(asked["die_at"], asked["die_in"])
            main()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    import oasr_cli.run
    from oasr_cli.app import main

    sys.argv[0] = "oasr"
    if sys.argv[1:] == ["--serve-real"]:
        serve("oasr.engine", "oasr.checkpoints.wenet", "oasr.decode.ctc_gpu")
    else:
        oasr_cli.run.load_engine = FakeEngine
        serve() if sys.argv[1:] == ["--serve"] else main()
