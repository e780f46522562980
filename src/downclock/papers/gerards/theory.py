"""Examples 1 and 2, Fig. 5 and Fig. 6."""

from __future__ import annotations

import numpy as np

from downclock.papers.gerards import PAPER, published
from downclock.papers.gerards.readings import CORRECTED, PUBLISHED
from downclock.papers.rows import Item, Row, Settings, judged
from downclock.planners.chip.clocks import ChipPower, global_clocks, single_clock
from downclock.planners.chip.theory import approximation_ratio, largest_saving


def example1(_: Settings) -> list[Row]:
    """Six tasks on three cores: 30, 10 and 20 cycles with 1, 2 and 3 active cores, d = 100."""
    omega = np.array([0.0, 30.0, 10.0, 20.0])
    best = global_clocks(omega, 100.0, ChipPower())
    single = single_clock(omega, 100.0, ChipPower(), static_aware=False)
    ours = {"energy": (best.energy, "J", 2), "one clock": (single.energy, "J", 2)}
    ours |= {f"f{m}": (float(best.clock[m]), "", 3) for m in (1, 2, 3)}
    return [
        judged(PAPER, "example1", name, printed, ours[name][0], ours[name][1], digits=ours[name][2])
        for name, printed in published.EXAMPLE1.items()
    ]


def example2(_: Settings) -> list[Row]:
    """The least makespan is not the least energy; d = 10."""
    cases = [("least makespan", "least makespan", (0.0, 10.25, 5.0))]
    cases += [
        (f"alternative, {reading.name}", "alternative", reading.example2)
        for reading in (PUBLISHED, CORRECTED)
    ]
    why = "the printed cycles add up to 36 units of work; the tasks have 35.5"
    rows = []
    for quantity, key, omega in cases:
        ours = global_clocks(np.array([0.0, *omega]), 10.0, ChipPower()).energy
        printed = published.EXAMPLE2[key]
        rows.append(judged(PAPER, "example2", quantity, printed, ours, "J", digits=3, because=why))
    return rows


def fig5(_: Settings) -> list[Row]:
    """Theorem 2: weighted makespan of a schedule of least makespan, at worst."""
    unread = "read from the curve only; the text states six cores"
    rows = []
    for cores in range(2, 11):
        printed = published.FIG5_SIX_CORES if cores == 6 else None
        ours = approximation_ratio(cores)
        rows.append(
            judged(PAPER, "fig5", f"ratio, M={cores}", printed, ours, "", digits=1, because=unread)
        )
    return rows


def fig6(_: Settings) -> list[Row]:
    """Greatest saving of clocks that follow the active cores."""
    rows = []
    for cores in (2, 4, 8, 16):
        printed = published.FIG6_SIXTEEN_CORES if cores == 16 else None
        why = "printed as 'up to 44 %': 44.8 cut, not rounded" if printed else "not in the text"
        ours = 100.0 * largest_saving(cores)
        rows.append(
            judged(PAPER, "fig6", f"saving, M={cores}", printed, ours, "%", digits=0, because=why)
        )
    return rows


ITEMS = (
    Item("example1", "Example 1: optimal clocks of six tasks", example1),
    Item("example2", "Example 2: least makespan is not least energy", example2),
    Item("fig5", "Fig. 5: how far makespan schedules can be off", fig5),
    Item("fig6", "Fig. 6: what clocks that follow the active cores can save", fig6),
)
