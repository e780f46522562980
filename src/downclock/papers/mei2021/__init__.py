"""mei2021: GPU clusters with deadlines, DVFS and server sleep (Mei et al., arXiv:2104.00486)."""

from __future__ import annotations

from downclock.papers.rows import Item

PAPER = "mei2021"


def items() -> dict[str, Item]:
    """Every table and figure that can be run, by name."""
    from downclock.papers.mei2021 import honest, offline, online, single_task

    found = (*single_task.ITEMS, *offline.ITEMS, *online.ITEMS, *honest.ITEMS)
    return {item.name: item for item in found}
