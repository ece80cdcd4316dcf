"""Encoders, one file an architecture."""
