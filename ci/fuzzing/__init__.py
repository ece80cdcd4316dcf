"""Malformed files for every reader: what is damaged, how, and what counts as a fault."""
