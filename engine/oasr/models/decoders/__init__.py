"""Decoders, one file an architecture."""
