"""Building blocks that several architectures share."""
