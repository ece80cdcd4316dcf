"""Waveform → features, batched, on the device of the samples."""
