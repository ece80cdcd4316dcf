"""`oasr transcribe`: flags → a checked Job → the run."""

from __future__ import annotations

import typer
from oasr.config import EngineConfig
from oasr.types import DecodingOptions

from oasr_cli import arguments as flag
from oasr_cli import console, settings
from oasr_cli.launching import LaunchFlags
from oasr_cli.settings import Job, RunOptions


def transcribe(
    inputs: flag.Inputs,
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
    shard: flag.Shard = None,
    vad: flag.Vad = "pauses",
    max_window: flag.MaxWindow = None,
    output_dir: flag.OutputDir = None,
    format: flag.Format = None,
    resume: flag.Resume = False,
    resume_anyway: flag.ResumeAnyway = False,
    retry_failed: flag.RetryFailed = False,
    overwrite: flag.Overwrite = False,
    dry_run: flag.DryRun = False,
    wer: flag.Wer = False,
    reference_field: flag.ReferenceField = None,
    progress: flag.Progress = None,
    log_level: flag.LogLevel = "warning",
    max_line_width: flag.MaxLineWidth = None,
    max_line_count: flag.MaxLineCount = None,
    min_cue_duration: flag.MinCueDuration = None,
    max_cue_duration: flag.MaxCueDuration = None,
    cue_pause: flag.CuePause = None,
    cue_gap: flag.CueGap = None,
    close_cue_gap: flag.CloseCueGap = None,
    highlight_words: flag.HighlightWords = False,
    batch_size: flag.BatchSize = 16,
    batch_seconds: flag.BatchSeconds = None,
    workers: flag.Workers = None,
    threads: flag.Threads = None,
    launcher: flag.Launcher = None,
    devices: flag.Devices = None,
    num_gpus: flag.NumGpus = None,
    actors: flag.Actors = None,
    ray_address: flag.RayAddress = None,
) -> None:
    """Transcribe recordings: one row out for each row in.

    Exit code: 0 all good, 1 nothing usable came out or the run broke, 2 usage,
    3 some rows failed (their rows say why), 130 or 143 after SIGINT or SIGTERM.
    """
    console.setup_logging(log_level)
    with settings.flag_names():
        config = EngineConfig(
            model=model,
            device=device,
            dtype=dtype,
            **settings.decode_method(decode_method, decoder_type),
            decode_options=settings.key_values(decode_option),
            max_batch_size=batch_size,
            max_batch_seconds=batch_seconds,
            threads=threads,
            vad=vad,
            max_window_s=max_window,
            **settings.given(workers=workers, max_new_tokens=max_new_tokens),
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
            output_dir=output_dir,
            formats=settings.comma_list(format),
            writer_settings=settings.writer_settings(
                highlight_words,
                max_line_width=max_line_width,
                max_line_count=max_line_count,
                min_cue_duration=min_cue_duration,
                max_cue_duration=max_cue_duration,
                cue_pause=cue_pause,
                cue_gap=cue_gap,
                close_cue_gap=close_cue_gap,
            ),
            word_timestamps=word_timestamps,
            resume=resume or resume_anyway or retry_failed,
            resume_anyway=resume_anyway,
            retry_failed=retry_failed,
            shard=settings.shard(shard),
            overwrite=overwrite,
            channel=settings.channel(channel),
            allow_pipes=allow_pipes,
            audio_root=audio_root,
            wer=wer,
            reference_field=reference_field,
            progress=progress,
        )
        engines = LaunchFlags(launcher, devices, num_gpus, actors, ray_address, workers, threads)
        job = Job(run, config, options, engines.plan(device, dry_run))
    from oasr_cli import dry_run as rehearsal
    from oasr_cli import run as performance

    raise typer.Exit((rehearsal if dry_run else performance).do(job))
