"""Tokenizers: ids ↔ text, and the pieces that a text is made of."""
