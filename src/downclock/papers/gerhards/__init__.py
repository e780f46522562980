"""gerhards: energy cost of task graphs under time-varying prices (Gerhards and Keller)."""

from __future__ import annotations

from downclock.papers.rows import Item

PAPER = "gerhards"


def items() -> dict[str, Item]:
    """Every figure and every experiment of the text that can be run, by name."""
    from downclock.papers.gerhards import model, savings, search

    found = (*model.ITEMS, *savings.ITEMS, *search.ITEMS)
    return {item.name: item for item in found}
