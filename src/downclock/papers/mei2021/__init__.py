"""mei2021: GPU clusters with deadlines, DVFS and server sleep (Mei et al., arXiv:2104.00486)."""

from __future__ import annotations

from functools import partial

from downclock.papers.registry import items_of

PAPER = "mei2021"

items = partial(items_of, __name__, "single_task", "authors", "offline", "online", "honest")
"""Every table and figure that can be run, by name."""
