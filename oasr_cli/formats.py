"""The output formats of a run: which flags they listen to, and what they need of the list and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from oasr.errors import OptionsError, OutputError, RowError
from oasr.output.cue_rules import CueRules
from oasr.types import RowFailure

from oasr_cli import console
from oasr_cli.settings import Job, RunOptions

if TYPE_CHECKING:
    from oasr.engine import Engine
    from oasr.launch.fleet import Fleet
    from oasr.manifest import InputList
    from oasr.output.writers import Writer


def writers_for(run: RunOptions) -> dict[str, Writer]:
    """The writers of the run's formats.

    Raises:
        OptionsError: an unknown format, or a flag that none of the formats listens to.
    """
    from oasr.output.writers import build_writers

    settings = run.writer_settings
    writers = build_writers(run.formats, settings)
    rules = [f.name for f in fields(CueRules) if getattr(settings.cues, f.name) != f.default]
    # Whoever writes cues has `configured`, by which the rules are told (docs/formats.md).
    if rules and not any(hasattr(writer, "configured") for writer in writers.values()):
        flags = ", ".join("--" + name.replace("_", "-") for name in rules)
        raise OptionsError(f"{flags}: shapes the cues of srt, vtt and tsv: add one of them to --format")
    if settings.highlight_words and not any(getattr(w, "highlights", False) for w in writers.values()):
        raise OptionsError(
            "--highlight-words: marks words in vtt alone, since srt has no time tags: add vtt to --format"
        )
    if settings.highlight_words and run.word_timestamps is False:
        raise OptionsError("--highlight-words needs the word times that --no-word-timestamps forbids")
    if run.word_timestamps is False and (needing := _asking(writers, "needed")):
        raise OptionsError(
            f"--format {needing} is made of word times, which --no-word-timestamps forbids: "
            "leave one of them out"
        )
    return writers


def check_speech(writers: Mapping[str, Writer], vad: str) -> None:
    """Refuse a format that is made of speech regions in a run that looks for none.

    Raises:
        OptionsError: names the format and the flag.
    """
    needing = ",".join(n for n, writer in writers.items() if getattr(writer, "speech", None) == "needed")
    if needing and vad in ("pauses", "none"):
        raise OptionsError(
            f"--format {needing} is made of speech regions, which --vad {vad} does not look for: "
            "give --vad silero or --vad energy"
        )


def check_names(writers: Mapping[str, Writer], inputs: InputList) -> None:
    """Refuse ids and recordings that one of the formats has no way to write, before any work.

    Looks at the rows of all shards: two that clash may be in different ones, and would meet in `oasr merge`.

    Raises:
        OptionsError: names the format, the row and what to do.
    """
    from oasr.output.rows import own_keys
    from oasr.output.run_files import check_places

    try:
        check_places(
            writers,
            (own_keys(row.row, row.id) for row in inputs.all_shards() if not isinstance(row, RowFailure)),
        )
    except OutputError as error:
        raise OptionsError(f"--format: {error}") from error


def with_word_times(job: Job, writers: Mapping[str, Writer], engine: Engine | Fleet) -> Job:
    """The job with word times asked for where a format wants them, the flags do not say, and they exist.

    Raises:
        OptionsError: a format needs them and this engine has none.
    """
    wanting, needing = _asking(writers, "wanted"), _asking(writers, "needed")
    # Who says --no-word-timestamps gets cues of segments, and pays for no alignment.
    if job.run.word_timestamps is not None or not (wanting or needing):
        return job
    options = replace(job.options, word_timestamps=True)
    try:
        engine.strategy.validate_options(options)
    except RowError as error:
        if needing:
            raise OptionsError(f"--format {needing} is made of word times, and {error}") from error
        console.note(f"{wanting}: a cue for each segment, since {error}")
        return job
    return replace(job, options=options)


def _asking(writers: Mapping[str, Writer], how: str) -> str:
    """The names of the formats whose `word_times` is `how`, joined by commas."""
    return ",".join(name for name, writer in writers.items() if getattr(writer, "word_times", None) == how)
