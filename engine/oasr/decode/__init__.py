"""Decode families: one file each, chosen by name through `build_decode_strategy`."""
