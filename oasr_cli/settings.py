"""What the flags of a run mean together, typed and checked before anything is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from oasr.config import EngineConfig
from oasr.errors import OptionsError
from oasr.launch.plan import LaunchPlan
from oasr.output.cue_rules import CueRules, WriterSettings
from oasr.types import DecodingOptions

# What the messages of an OptionsError may begin with; InputOptions names its folder in two words.
_FIELDS = {"audio root"} | {
    f.name for cls in (EngineConfig, DecodingOptions, CueRules, LaunchPlan) for f in fields(cls)
}
_FLAG_OF = {
    "max_batch_size": "--batch-size",
    "max_batch_seconds": "--batch-seconds",
    "max_window_s": "--max-window",
    "audio root": "--audio-root",
    "address": "--ray-address",
}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command itself decides: where rows come from, where results go, what is shown.

    Attributes:
        inputs: as given on the command line.
        output_dir: folder for the results; None = stdout.
        formats: output formats asked for by name.
        writer_settings: what the formats are told about subtitles.
        word_timestamps: what the flag says; None = word times are asked for where a format wants them.
        channel: "mix", "split" or a channel number.
        reference_field: manifest key with the reference; None = `text` and its synonyms.
        resume_anyway: go on in a folder whose run was another one.
        retry_failed: at a resume, try the failed rows again.
        shard: (i, n) = rows i, i + n, ... of the list; None = all.
        progress: True, False, or None = when stderr is a terminal.
    """

    inputs: tuple[str, ...]
    output_dir: str | None = None
    formats: tuple[str, ...] = ()
    writer_settings: WriterSettings = field(default_factory=WriterSettings)
    word_timestamps: bool | None = None
    resume: bool = False
    resume_anyway: bool = False
    retry_failed: bool = False
    overwrite: bool = False
    shard: tuple[int, int] | None = None
    channel: int | str = "mix"
    allow_pipes: bool = False
    audio_root: str | None = None
    wer: bool = False
    reference_field: str | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        """Raise OptionsError for flags that contradict each other, naming both."""
        conflicts = (
            (
                self.resume and self.overwrite,
                "--resume and --overwrite exclude each other: go on with the old results, or drop them",
            ),
            (self.resume and self.output_dir is None, "--resume needs --output-dir: the folder to go on in"),
            (
                self.overwrite and self.output_dir is None,
                "--overwrite needs --output-dir: the folder whose results may be replaced",
            ),
            (
                len(self.formats) > 1 and self.output_dir is None,
                f"--format {','.join(self.formats)} needs --output-dir, the folder for the files: "
                "stdout takes one format",
            ),
            (
                self.reference_field is not None and not self.wer,
                "--reference-field is read by --wer only: add --wer or leave it out",
            ),
        )
        for wrong, text in conflicts:
            if wrong:
                raise OptionsError(text)


@dataclass(frozen=True, slots=True)
class Job:
    """One `oasr transcribe`, ready to be done."""

    run: RunOptions
    config: EngineConfig
    options: DecodingOptions
    launch: LaunchPlan = field(default_factory=LaunchPlan)

    def __post_init__(self) -> None:
        """Raise OptionsError for flags of different groups that contradict each other, naming both."""
        options = self.options
        for flag, given in (("--top-k", options.top_k > 0), ("--top-p", options.top_p < 1)):
            if given and options.temperature == 0:
                raise OptionsError(
                    f"{flag} has no effect at --temperature 0, which takes the likeliest token: "
                    f"raise --temperature or leave {flag} out"
                )


def given(**fields: Any) -> dict[str, Any]:
    """The fields of EngineConfig whose flags were given; the others keep their defaults.

    `max_new_tokens` is one of them, since a row may lower the engine's limit and never raise it.
    """
    return {name: value for name, value in fields.items() if value is not None}


@contextmanager
def flag_names(decode_options: Iterable[str] = ()) -> Iterator[None]:
    """Let an OptionsError that opens with the name of a configuration field open with its flag instead.

    Args:
        decode_options: names given with --decode-option, whose errors are told that way.
    """
    try:
        yield
    except OptionsError as error:
        name, colon, rest = str(error).partition(": ")
        if name in decode_options:
            flag = f"--decode-option {name}"
        elif name in _FIELDS:
            flag = _FLAG_OF.get(name, "--" + name.replace("_", "-"))
        else:
            raise
        raise OptionsError(f"{flag}{colon}{rest}") from error


def writer_settings(highlight_words: bool = False, **rules: float | None) -> WriterSettings:
    """What the flags about subtitles say; a rule that is None keeps its default.

    Raises:
        OptionsError: a value outside its range.
    """
    return WriterSettings(CueRules(**given(**rules)), highlight_words)


def comma_list(values: Iterable[str] | None) -> tuple[str, ...]:
    """`["json,txt", "jsonl"]` → each name once, in order.

    Raises:
        OptionsError: an empty name.
    """
    names = [name.strip() for value in values or () for name in value.split(",")]
    if "" in names:
        raise OptionsError(f"--format: expected names joined by commas, got {','.join(values or ())!r}")
    return tuple(dict.fromkeys(names))


def batch_sizes(text: str) -> tuple[int, ...]:
    """`1,8,32` → the numbers, in order.

    Raises:
        OptionsError: anything but whole numbers above 0, or one of them twice.
    """
    sizes = [part.strip() for part in text.split(",")]
    # int() would also read the digits of other scripts, and refuses thousands in words of its own.
    good = all(re.fullmatch("0*[1-9][0-9]{0,8}", size) for size in sizes)
    if not good or len(set(map(int, sizes))) < len(sizes):
        raise OptionsError(f"--batch-size: expected different numbers from 1 on, as in 1,8,32, got {text!r}")
    return tuple(map(int, sizes))


def shard(text: str | None) -> tuple[int, int] | None:
    """`0/4` → (0, 4): which rows of the list are worked on.

    Raises:
        OptionsError: anything but I/N with I below N.
    """
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
    if found is None or not int(found[1]) < int(found[2]):
        raise OptionsError(f"--shard: expected I/N with I from 0 to N-1, as in 0/4 to 3/4, got {text!r}")
    return int(found[1]), int(found[2])


def key_values(pairs: Iterable[str] | None) -> dict[str, str]:
    """`["window=auto"]` → `{"window": "auto"}`.

    Raises:
        OptionsError: no `=`, or a key that is given twice with different values.
    """
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise OptionsError(f"--decode-option: expected KEY=VALUE, such as window=auto, got {pair!r}")
        if found.setdefault(key, value) != value:
            raise OptionsError(
                f"--decode-option: {key} is given twice, as {found[key]!r} and as {value!r}; keep one of them"
            )
    return found


def decode_method(method: str | None, decoder_type: str | None) -> dict[str, Any]:
    """The EngineConfig fields for --decode-method and --decoder-type; the latter implies `ctc`.

    Raises:
        OptionsError: --decoder-type beside a family that it cannot split.
    """
    if decoder_type is None:
        return {"decode_method": method}
    if method not in (None, "ctc"):
        raise OptionsError(
            f"--decoder-type {decoder_type} says what --decode-method ctc means and cannot go with "
            f"--decode-method {method}: leave one of them out"
        )
    return {"decode_method": "ctc", "decoder_type": decoder_type}


def channel(value: str) -> int | str:
    """`mix`, `split` or a channel number from 0.

    Raises:
        OptionsError: anything else.
    """
    if value in ("mix", "split"):
        return value
    # int() would also read the digits of other scripts, and refuses thousands in words of its own.
    if not re.fullmatch("[0-9]{1,9}", value):
        raise OptionsError(f"--channel: expected mix, split or a channel number from 0 on, got {value!r}")
    return int(value)
