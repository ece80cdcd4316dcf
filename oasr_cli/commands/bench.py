"""`oasr bench`: flags → a checked Job and how it is measured, or two reports side by side."""

from __future__ import annotations

import typer
from oasr.config import EngineConfig
from oasr.errors import OptionsError
from oasr.types import DecodingOptions

from oasr_cli import arguments as flag
from oasr_cli import console, settings
from oasr_cli.settings import Job, RunOptions

_OF_COMPARE = ("inputs", "compare", "allow_different", "json", "log_level")


def bench(
    context: typer.Context,
    inputs: flag.BenchInputs,
    model: flag.Model = "tiny.en",
    device: flag.Device = "auto",
    dtype: flag.Dtype = "auto",
    decode_method: flag.DecodeMethod = None,
    decoder_type: flag.DecoderType = None,
    decode_option: flag.DecodeOption = None,
    language: flag.Language = None,
    task: flag.Task = None,
    prompt: flag.Prompt = None,
    word_timestamps: flag.WordTimestamps = None,
    n_best: flag.NBest = 1,
    max_new_tokens: flag.MaxNewTokens = None,
    temperature: flag.Temperature = 0.0,
    top_k: flag.TopK = 0,
    top_p: flag.TopP = 1.0,
    seed: flag.Seed = 0,
    channel: flag.Channel = "mix",
    audio_root: flag.AudioRoot = None,
    allow_pipes: flag.AllowPipes = False,
    vad: flag.Vad = "pauses",
    max_window: flag.MaxWindow = None,
    reference_field: flag.ReferenceField = None,
    batch_size: flag.BatchSizes = "16",
    repeat: flag.Repeat = 3,
    warmup: flag.Warmup = 1,
    csv: flag.Csv = None,
    html: flag.Html = None,
    compare: flag.Compare = False,
    allow_different: flag.AllowDifferent = False,
    json: flag.AsJson = False,
    progress: flag.Progress = None,
    log_level: flag.LogLevel = "warning",
    batch_seconds: flag.BatchSeconds = None,
    workers: flag.Workers = 2,
    threads: flag.Threads = None,
) -> None:
    """Measure speed, latency, memory and error rate of a list, or compare two such reports.

    The list goes through the engine as `oasr transcribe` drives it. Exit code: 0 all good, 1 nothing
    usable came out or the run broke, 2 usage, 3 some rows failed, 130 or 143 after SIGINT or SIGTERM.
    """
    console.setup_logging(log_level)
    if compare:
        _refuse_others(context)
        from oasr_cli.bench_report import compare_files

        compare_files(inputs, allow_different, as_json=json)
        return
    if allow_different:
        raise OptionsError("--allow-different is about --compare only: add --compare or leave it out")
    sizes = settings.batch_sizes(batch_size)
    with settings.flag_names():
        config = EngineConfig(
            model=model,
            device=device,
            dtype=dtype,
            **settings.decode_method(decode_method, decoder_type),
            decode_options=settings.key_values(decode_option),
            max_batch_size=sizes[0],  # to be checked with the rest; each run puts in its own
            max_batch_seconds=batch_seconds,
            workers=workers,
            threads=threads,
            vad=vad,
            max_window_s=max_window,
            **settings.given(max_new_tokens=max_new_tokens),
        )
        options = DecodingOptions(
            n_best=n_best,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            prompt=prompt,
            task=task,
            language=language,
            word_timestamps=bool(word_timestamps),
        )
        run = RunOptions(
            inputs=tuple(inputs),
            channel=settings.channel(channel),
            allow_pipes=allow_pipes,
            audio_root=audio_root,
            wer=True,  # a bench scores whatever has a reference
            reference_field=reference_field,
            progress=progress,
        )
        job = Job(run, config, options)
    from oasr_cli.bench_run import Plan, do

    raise typer.Exit(do(job, Plan(sizes, repeat, warmup, csv, html, as_json=json)))


def _refuse_others(context: typer.Context) -> None:
    """A flag that --compare would ignore is an error."""
    for param in context.command.params:
        source = context.get_parameter_source(param.name or "")
        if param.name not in _OF_COMPARE and source is not None and source.name == "COMMANDLINE":
            raise OptionsError(
                f"--compare measures nothing, so {param.opts[0]} has no effect: leave one of them out"
            )
