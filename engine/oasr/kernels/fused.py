"""How often a kernel ran, and how often what it cannot serve took the general path instead."""

from __future__ import annotations

from collections import Counter

fused_stats: Counter[str] = Counter()
"""Calls by kernel name; a call that took the general path counts as "name: what the kernel cannot serve"."""


def served(kernel: str, gap: str | None) -> bool:
    """Count one call, and say whether the kernel takes it: it does when there is no gap."""
    fused_stats[kernel if gap is None else f"{kernel}: {gap}"] += 1
    return gap is None
