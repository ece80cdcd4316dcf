"""The root command: version, help, speed of help, spelling of options, usage errors."""

from __future__ import annotations

import json
import subprocess
import sys

import oasr as library
import pytest

HEAVY = ("torch", "torchaudio", "numpy", "transformers", "soundfile", "av", "rich", "oasr._C", "oasr.engine")
TRANSCRIBE_FLAGS = [
    "--model",
    "--device",
    "--dtype",
    "--decode-method",
    "--decoder-type",
    "--decode-option",
    "--language",
    "--task",
    "--prompt",
    "--word-timestamps",
    "--n-best",
    "--max-new-tokens",
    "--temperature",
    "--top-k",
    "--top-p",
    "--seed",
    "--channel",
    "--audio-root",
    "--shard",
    "--allow-pipes",
    "-o",
    "--output-dir",
    "-f",
    "--format",
    "--resume",
    "--resume-anyway",
    "--retry-failed",
    "--overwrite",
    "--dry-run",
    "--wer",
    "--reference-field",
    "--progress",
    "--no-progress",
    "--log-level",
    "--max-line-width",
    "--max-line-count",
    "--min-cue-duration",
    "--max-cue-duration",
    "--cue-pause",
    "--cue-gap",
    "--close-cue-gap",
    "--highlight-words",
    "--batch-size",
    "--batch-seconds",
    "--workers",
    "--threads",
    "--launcher",
    "--devices",
    "--num-gpus",
    "--actors",
    "--ray-address",
]


def test_version(oasr):
    done = oasr("--version")
    assert (done.code, done.out, done.err) == (0, f"oasr {library.__version__}\n", "")


@pytest.mark.parametrize("args", [["--help"], ["transcribe", "--help"], ["models", "-h"], ["--version"]])
def test_help_imports_nothing_heavy(args, child_env):
    code = (
        "import sys, json\n"
        "sys.argv = ['oasr'] + json.loads(sys.argv[1])\n"
        "from oasr_cli.app import main\n"
        "try:\n    main()\n"
        "except SystemExit as done:\n    assert not done.code, done.code\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, json.dumps(args)]
    done = subprocess.run(command, env=child_env, capture_output=True, text=True, check=True)
    assert json.loads(done.stderr) == []
    assert done.stdout


def test_help_lists_every_flag_under_a_heading(oasr):
    text = oasr("transcribe", "--help").out
    for flag in TRANSCRIBE_FLAGS:
        assert f"{flag} " in text or f"{flag}," in text, flag
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Arguments:", "Model:", "Decoding:", "Input:", "Output:", "Subtitles (srt, vtt, tsv):",
        "Speed and memory:", "Several engines:", "Options:",
    ]  # fmt: skip


def test_help_of_the_root_names_the_commands(oasr):
    text = oasr("--help").out
    assert all(f"\n  {name} " in text for name in ("transcribe", "models", "families"))
    assert oasr().code == 2


@pytest.mark.parametrize("spelling", ["--output-dir", "--output_dir"])
@pytest.mark.parametrize("words", ["--word-timestamps", "--word_timestamps"])
def test_dashes_and_underscores_are_the_same(oasr, engines, manifest, tmp_path, spelling, words):
    done = oasr("transcribe", manifest(1), f"{spelling}={tmp_path / 'a_b'}", words, "--decode_method", "aed")
    assert done.code == 0
    assert (tmp_path / "a_b" / "results.jsonl").exists()  # only names are respelled, never values
    assert engines[0].options.word_timestamps


def test_boolean_flags_have_a_negative(oasr, engines, manifest):
    assert oasr("transcribe", manifest(1), "--word-timestamps", "--no_word_timestamps").code == 0
    assert not engines[0].options.word_timestamps


def test_a_command_that_is_not_there_is_usage(oasr):
    done = oasr("transcirbe")
    assert done.code == 2 and "transcirbe" in done.err and done.out == ""


def test_the_package_runs_as_a_module(child_env):
    command = [sys.executable, "-m", "oasr_cli", "--version"]
    done = subprocess.run(command, env=child_env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == f"oasr {library.__version__}\n"
