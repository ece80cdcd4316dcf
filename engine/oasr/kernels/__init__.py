"""Python faces of the kernels: each checks its tensors, launches, and says what it supports."""
