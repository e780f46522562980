"""gerards: task graphs under one clock for the chip (Gerards, Hurink and Kuper).

"On the interplay between global DVFS and scheduling tasks with precedence constraints", IEEE
Transactions on Computers 64(6), 2015.
"""

from __future__ import annotations

from downclock.papers.rows import Item

PAPER = "gerards"


def items() -> dict[str, Item]:
    """Every table and figure that can be run, by name."""
    from downclock.papers.gerards import tables, theory

    return {item.name: item for item in (*theory.ITEMS, *tables.ITEMS)}
