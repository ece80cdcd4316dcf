"""Pinned error rates: `ci/wer-reference.json`, the runs that check them, and what is written about them."""
