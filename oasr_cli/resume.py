"""What a run says about itself in `run.json`, and whether it may go on with what another one began."""

from __future__ import annotations

import shlex
import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oasr.errors import OptionsError, OutputError

from oasr_cli import console
from oasr_cli.settings import Job

if TYPE_CHECKING:
    from oasr.engine import Engine
    from oasr.launch.fleet import Fleet
    from oasr.manifest import InputList


def go_on(job: Job, inputs: InputList) -> Job:
    """The job with the formats of the run that it resumes; list and flags are compared before loading.

    Raises:
        OptionsError: the list or a flag is another one, and --resume-anyway is not given.
    """
    if not job.run.resume:
        return job
    from oasr.output.run_record import read_record

    folder = Path(job.run.output_dir or "")
    try:
        earlier = read_record(folder)
    except OutputError as error:
        raise OptionsError(f"--output-dir: {error}") from error
    if earlier is None:
        if (folder / "results.jsonl").exists():
            console.note(f"{folder}: no run.json, so whether list and flags are the same is not known")
        return job
    compare(job, earlier, {"list": list_facts(job, inputs), "settings": _asked(job)})
    formats = [*earlier["settings"].get("--format", []), *job.run.formats]
    return replace(job, run=replace(job.run, formats=tuple(dict.fromkeys(formats))))


def about(job: Job, inputs: InputList, engine: Engine | Fleet) -> dict[str, Any]:
    """The record of a run that is about to begin."""
    from oasr.launch.facts import model_facts
    from oasr.output.run_record import SCHEMA, now, versions

    return {
        "schema": SCHEMA,
        "state": "running",
        "started": now(),
        "updated": now(),
        "command": shlex.join(["oasr", *sys.argv[1:]]),
        "list": list_facts(job, inputs),
        "model": model_facts(engine),
        "settings": _asked(job) | _resolved(job, engine) | {"--format": list(job.run.formats)},
        # For people to read: `settings` are compared, while devices and folders may change.
        "config": asdict(engine.config) | {"device": str(engine.device), "audio_root": job.run.audio_root},
        "versions": versions(),
        "counts": {},
        "changes": [],
    }


def continued(job: Job, record: dict[str, Any]) -> dict[str, Any]:
    """The record of a run that goes on with what its folder holds; what the model settled is compared.

    Raises:
        OptionsError: something differs, and --resume-anyway is not given.
    """
    from oasr.output.run_record import read_record

    earlier = read_record(Path(job.run.output_dir or "")) if job.run.resume else None
    if earlier is None:
        return record
    passed = [*earlier.get("changes", ()), *compare(job, earlier, record)]
    return record | {"started": earlier.get("started"), "changes": passed}


def results_before(job: Job) -> Callable[[int], int | None]:
    """A function from the index of a row to how many results it had; None where no finished run tells."""
    from oasr.output.run_record import read_record

    # Under --resume-anyway the rows may be those of another list.
    known = job.run.resume and not job.run.resume_anyway
    record = read_record(Path(job.run.output_dir or "")) if known else None
    groups = (record or {}).get("results_per_row") or ()
    ends = list(accumulate(rows for rows, _ in groups))
    first, step = job.run.shard or (0, 1)

    def results(index: int) -> int | None:
        group = bisect_right(ends, (index - first) // step)
        return groups[group][1] if group < len(ends) else None

    return results


def list_facts(job: Job, inputs: InputList) -> dict[str, Any]:
    """What identifies the list and the part of it that this run works through."""
    shard = job.run.shard
    return {
        "inputs": list(job.run.inputs),
        "sha256": inputs.sha256(),
        "rows": inputs.total(),
        "shard": None if shard is None else f"{shard[0]}/{shard[1]}",
    }


def compare(job: Job, earlier: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """What differs between an earlier run and this one, in words; only --resume-anyway lets anything pass.

    Args:
        job: this run.
        earlier: the record of the earlier one.
        current: the record of this run, or the parts of it that are known so far.

    Raises:
        OptionsError: something differs; names all of it.
    """
    from oasr.output.run_record import differences

    # A format that is added may bring word times with it; what may not change is a flag that was given.
    addable = ("--wer",) if job.run.word_timestamps is not None else ("--wer", "--word-timestamps")
    found = differences(earlier, current, addable)
    if found and not job.run.resume_anyway:
        raise OptionsError(
            f"--resume: {job.run.output_dir} holds another run: {'; '.join(found)}. Give what was given "
            "then, --resume-anyway to go on with rows of both, or --overwrite to start over"
        )
    return found


def _asked(job: Job) -> dict[str, Any]:
    """Flags that decide what a row or a file says, as far as they are known before the model."""
    run, config, options = job.run, job.config, asdict(job.options)
    # A format may ask for word times, and the model decides whether it gets them: see `_resolved`.
    del options["word_timestamps"]
    settings = run.writer_settings
    return {
        **{_flag(name): value for name, value in options.items()},
        **{_flag(name): value for name, value in asdict(settings.cues).items()},
        "--highlight-words": settings.highlight_words,
        "--decode-option": {key: str(value) for key, value in config.decode_options.items()},
        "--vad": config.vad,
        "--max-window": config.max_window_s,
        "--channel": run.channel,
        # The key and not a mere yes: another one holds other references.
        "--wer": (run.reference_field or "text") if run.wer else None,
    }


def _resolved(job: Job, engine: Engine | Fleet) -> dict[str, Any]:
    """What only the loaded model settles."""
    return {
        "--decode-method": engine.strategy.name,
        "--dtype": str(engine.dtype),
        "--word-timestamps": job.options.word_timestamps,
    }


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
