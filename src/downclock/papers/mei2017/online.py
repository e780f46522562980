"""Figures 3 to 7 of mei2017: its cluster (85 W idle, 200 W min to turn on), its task utilisation.

The nine applications were measured on a Fermi card and never published; the tasks here are drawn
from the ranges that mei2021 prints, so energies differ while the shape can be compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from downclock.papers.mei.runs import RHO, Case, Outcome, compared, outcome
from downclock.papers.mei2017 import PAPER, published
from downclock.papers.mei2021.single_task import savings
from downclock.papers.rows import Item, Row, Settings, judged, not_run
from downclock.power.library import Library
from downclock.power.points import NARROW_2017, WIDE
from downclock.workloads import mei

GJ = 1e9
MJ = 1e6

NOT_PUBLIC = "the Fermi measurements of the nine applications are not public"
STAND_IN = f"{NOT_PUBLIC}; tasks are drawn from the ranges of mei2021"
SPECS = {
    "edl without DVFS": f"edl:dvfs=off,rho={RHO},start=stream",
    "edl theta=1": f"edl:rho={RHO},start=stream",
    "edl theta=0.95": f"edl:theta=0.95,rho={RHO},start=stream",
    "edl theta=0.9": f"edl:theta=0.9,rho={RHO},start=stream",
    "bin": f"bin:rho={RHO}",
    "bin without DVFS": f"bin:dvfs=off,rho={RHO}",
}


def outcomes(settings: Settings, name: str, per_server: int = 16) -> list[Outcome]:
    """One outcome per set of the conference's day."""
    cases = [Case("online", s, 1.6, per_server, "mei2017", "text") for s in settings.seeds]
    return [outcome(case, SPECS[name]) for case in cases]


def _row(
    settings: Settings,
    item: str,
    quantity: str,
    value: float | None,
    found: list[Outcome],
    part: Callable[[Outcome], float],
    unit: str = "GJ",
) -> Row:
    mine = [part(one) for one in found]
    return compared(settings, (PAPER, item), quantity, value, mine, unit, STAND_IN)


def fig3(settings: Settings) -> list[Row]:
    """Savings on single tasks."""
    profiles = mei.printed_profiles(np.random.default_rng(settings.seed), 2000)
    names = np.array([f"a{i}" for i in range(2000)], dtype=object)
    library = Library.of_one_kind(names, mei.PAIR, profiles)
    rows = [
        not_run(PAPER, "fig3", "wide interval, nine Fermi applications",
                published.SINGLE_SAVING, "%", NOT_PUBLIC)
    ]  # fmt: skip
    wide, narrow = (float(savings(library, clocks).mean()) for clocks in (WIDE, NARROW_2017))
    quantity = "wide interval, ranges of mei2021"
    value = published.SINGLE_SAVING
    rows.append(judged(PAPER, "fig3", quantity, value, wide, "%", digits=0, because=STAND_IN))
    quantity = "narrow interval, ranges of mei2021"
    rows.append(judged(PAPER, "fig3", quantity, None, narrow, "%", because=STAND_IN))
    return rows


def fig4(settings: Settings) -> list[Row]:
    """Energy by part: run energy and totals."""
    rows = []
    for name, spec in (("without DVFS", "edl without DVFS"), ("with DVFS", "edl theta=1")):
        found, value = outcomes(settings, spec), published.RUN[name]
        quantity = f"run energy {name}"
        rows.append(_row(settings, "fig4", quantity, value, found, lambda o: o.run_j / GJ))
    for name, value in published.TOTAL_L16.items():
        found = outcomes(settings, name)
        rows.append(
            _row(settings, "fig4", f"total of {name}, l=16", value, found, lambda o: o.total_j / GJ)
        )
    printed = 100.0 * (1.0 - published.RUN["with DVFS"] / published.RUN["without DVFS"])
    why = "the paper's own 11.03 and 7.05 GJ give 36.1 %"
    quantity = "run energy saved, from the printed energies"
    rows.append(
        judged(PAPER, "fig4", quantity, published.RUN_SAVING, printed, "%", digits=1, because=why)
    )
    return rows


def fig5(settings: Settings) -> list[Row]:
    """Idle and turn-on energy."""
    rows = []
    for name, value in published.IDLE_L16.items():
        found = outcomes(settings, name)
        quantity = f"idle energy of {name}, l=16"
        rows.append(_row(settings, "fig5", quantity, value, found, lambda o: o.idle_j / GJ))
    value = published.OVERHEAD_MJ["most"]
    found = outcomes(settings, "edl without DVFS", 1)
    quantity = "turn-on energy of edl without DVFS, l=1"
    rows.append(_row(settings, "fig5", quantity, value, found, lambda o: o.wake_j / MJ, "MJ"))
    total, run = published.TOTAL_L16["edl theta=1"], published.RUN["with DVFS"]
    why = "its total of 10.57 GJ less the run energy of 7.05 GJ leaves 3.5 GJ, as section V-E says"
    rows.append(
        judged(PAPER, "fig5", "idle energy of edl theta=1, from the printed totals",
               published.IDLE_L16["edl theta=1"], total - run, "GJ", digits=2, because=why)
    )  # fmt: skip
    return rows


def fig6(settings: Settings) -> list[Row]:
    """Readjustment at l = 16."""
    rows = []
    found = outcomes(settings, "edl theta=1")
    quantity, value = "idle energy, theta=1, l=16", published.IDLE_L16_LATER
    rows.append(_row(settings, "fig6", quantity, value, found, lambda o: o.idle_j / GJ))
    for name, value in (("edl theta=0.95", 8.51), ("edl theta=0.9", 8.51)):
        found = outcomes(settings, name)
        quantity = f"total of {name}, l=16"
        rows.append(_row(settings, "fig6", quantity, value, found, lambda o: o.total_j / GJ))
    return rows


def fig7(settings: Settings) -> list[Row]:
    """Reduction of total energy against no DVFS, smallest and largest servers."""
    rows = []
    for size, end in ((16, "least"), (1, "most")):
        base = outcomes(settings, "edl without DVFS", size)
        found = outcomes(settings, "edl theta=0.9", size)
        mine = [100.0 * (1.0 - o.total_j / b.total_j) for o, b in zip(found, base, strict=True)]
        quantity = f"reduction, theta=0.9, l={size}"
        value = published.REDUCTION[end]
        rows.append(compared(settings, (PAPER, "fig7"), quantity, value, mine, "%", STAND_IN))
    return rows


ITEMS = (
    Item("fig3", "Energy saved on single tasks", fig3),
    Item("fig4", "Energy by part", fig4),
    Item("fig5", "Idle energy and turn-ons", fig5),
    Item("fig6", "Theta-readjustment", fig6),
    Item("fig7", "Reduction against no DVFS", fig7),
)
