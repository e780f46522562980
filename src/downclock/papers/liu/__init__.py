"""liu: power-efficient time-sensitive mapping on CPUs and GPUs, with DVFS (Liu et al., 2012)."""

from __future__ import annotations

from downclock.papers.rows import Item

PAPER = "liu"


def items() -> dict[str, Item]:
    """Every example, figure and claim that can be run, by name."""
    from downclock.papers.liu import a100, examples, figures, ours, safety

    found = (*examples.ITEMS, *figures.ITEMS, *safety.ITEMS, *ours.ITEMS, *a100.ITEMS)
    return {item.name: item for item in found}
