"""liu: power-efficient time-sensitive mapping on CPUs and GPUs, with DVFS (Liu et al., 2012)."""

from __future__ import annotations

from functools import partial

from downclock.papers.registry import items_of

PAPER = "liu"

items = partial(items_of, __name__, "examples", "figures", "safety", "ours", "a100")
"""Every example, figure and claim that can be run, by name."""
