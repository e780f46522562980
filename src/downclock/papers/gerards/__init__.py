"""gerards: task graphs under one clock for the chip (Gerards, Hurink and Kuper).

"On the interplay between global DVFS and scheduling tasks with precedence constraints", IEEE
Transactions on Computers 64(6), 2015.
"""

from __future__ import annotations

from functools import partial

from downclock.papers.registry import items_of

PAPER = "gerards"

items = partial(items_of, __name__, "theory", "tables")
"""Every table and figure that can be run, by name."""
