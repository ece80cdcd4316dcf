"""Decoder state of label-synchronous families."""
