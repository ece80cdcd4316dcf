"""The input list: recordings, folders, globs, JSONL manifests and Kaldi data folders → rows."""

from oasr.manifest.inputs import InputList
from oasr.manifest.opening import InputOptions, open_inputs

__all__ = ["InputList", "InputOptions", "open_inputs"]
