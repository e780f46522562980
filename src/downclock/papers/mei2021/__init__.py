"""mei2021: GPU clusters with deadlines, DVFS and server sleep (Mei et al., arXiv:2104.00486)."""

from __future__ import annotations

from downclock.papers.rows import Item

PAPER = "mei2021"


def items() -> dict[str, Item]:
    """Every table and figure that can be run, by name."""
    from downclock.papers.mei2021 import authors, honest, offline, online, single_task

    parts = (single_task, authors, offline, online, honest)
    found = [item for part in parts for item in part.ITEMS]
    return {item.name: item for item in found}
