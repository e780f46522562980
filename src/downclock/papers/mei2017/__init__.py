"""mei2017: the conference version of mei2021, online only (Mei et al., INFOCOM workshops 2017)."""

from __future__ import annotations

from functools import partial

from downclock.papers.registry import items_of

PAPER = "mei2017"

items = partial(items_of, __name__, "online")
"""Every figure that can be run, by name."""
