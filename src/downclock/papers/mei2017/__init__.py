"""mei2017: the conference version of mei2021, online only (Mei et al., INFOCOM workshops 2017)."""

from __future__ import annotations

from downclock.papers.rows import Item

PAPER = "mei2017"


def items() -> dict[str, Item]:
    """Every figure that can be run, by name."""
    from downclock.papers.mei2017 import online

    return {item.name: item for item in online.ITEMS}
