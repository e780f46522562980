"""gerhards: energy cost of task graphs under time-varying prices (Gerhards and Keller)."""

from __future__ import annotations

from functools import partial

from downclock.papers.registry import items_of

PAPER = "gerhards"

items = partial(items_of, __name__, "model", "savings", "search")
"""Every figure and every experiment of the text that can be run, by name."""
