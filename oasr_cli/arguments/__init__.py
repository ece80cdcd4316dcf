"""Every flag, defined once as an Annotated alias; commands choose from these."""

from oasr_cli.arguments.decoding import (
    Language,
    MaxNewTokens,
    NBest,
    Prompt,
    Seed,
    Task,
    Temperature,
    TopK,
    TopP,
    WordTimestamps,
)
from oasr_cli.arguments.inputs import AllowPipes, AudioRoot, Channel, Inputs
from oasr_cli.arguments.model import DecodeMethod, DecodeOption, DecoderType, Device, Dtype, Model
from oasr_cli.arguments.output import (
    AsJson,
    Format,
    LogLevel,
    OutputDir,
    Overwrite,
    Progress,
    ReferenceField,
    Resume,
    Wer,
)
from oasr_cli.arguments.speed import BatchSeconds, BatchSize, Threads, Workers

__all__ = [
    "AllowPipes",
    "AsJson",
    "AudioRoot",
    "BatchSeconds",
    "BatchSize",
    "Channel",
    "DecodeMethod",
    "DecodeOption",
    "DecoderType",
    "Device",
    "Dtype",
    "Format",
    "Inputs",
    "Language",
    "LogLevel",
    "MaxNewTokens",
    "Model",
    "NBest",
    "OutputDir",
    "Overwrite",
    "Progress",
    "Prompt",
    "ReferenceField",
    "Resume",
    "Seed",
    "Task",
    "Temperature",
    "Threads",
    "TopK",
    "TopP",
    "Wer",
    "WordTimestamps",
    "Workers",
]
