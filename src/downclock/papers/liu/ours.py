"""Energy-aware replanning against the paper's Dynamic, with honest clocks."""

from __future__ import annotations

from collections.abc import Callable

from downclock.papers.liu import PAPER
from downclock.papers.liu.runs import SCHEMES, Ended, sets, table
from downclock.papers.rows import Item, Row, Settings, judged
from downclock.workloads.liu import Box

LOADS = ("light", "heavy")
ARRIVALS_S = 150.0


def ratio(
    ends: dict[str, list[Ended]], name: str, base: str, energy_of: Callable[[Ended], float]
) -> float:
    """Energy over all sets, as a ratio to another scheme's."""
    return sum(map(energy_of, ends[name])) / sum(map(energy_of, ends[base]))


def offline(settings: Settings) -> list[Row]:
    """Jobs at time 0 that end early: common horizon above idle, and 100 W until makespan."""
    rows = []
    names = ("ERF", "Static", "Dynamic", "Dynamic, no balancing", "Aggressive")
    chosen = {name: SCHEMES[name] for name in (*names, "Ours, horizon", "Ours, makespan")}
    for load in LOADS:
        ends = table(sets(settings, load, Box(system_w=100.0)), chosen)
        for name in chosen:
            if name == "Dynamic":
                continue
            if name != "Ours, makespan":
                value = ratio(ends, name, "Dynamic", lambda one: one.above_idle_j)
                rows.append(_row(f"{name} / Dynamic, {load}, common horizon", value, ends, name))
            if name != "Ours, horizon":
                value = ratio(ends, name, "Dynamic", lambda one: one.total_j)
                text = f"{name} / Dynamic, {load}, 100 W until makespan"
                rows.append(_row(text, value, ends, name))
    return rows


def online(settings: Settings) -> list[Row]:
    """Arrivals over 150 s, common horizon above idle, against the safe Dynamic."""
    rows = []
    chosen = {name: SCHEMES[name] for name in ("Safe", "Dynamic", "Ours, horizon")}
    for load in LOADS:
        found = sets(settings, load, Box(), arrivals_s=ARRIVALS_S)
        ends = table(found, chosen)
        for name in ("Dynamic", "Ours, horizon"):
            value = ratio(ends, name, "Safe", lambda one: one.above_idle_j)
            rows.append(_row(f"{name} / safe Dynamic, {load}, online", value, ends, name))
    return rows


def _row(text: str, value: float, ends: dict[str, list[Ended]], name: str) -> Row:
    missed, rejected = (
        sum(one.missed for one in ends[name]),
        sum(one.rejected for one in ends[name]),
    )
    note = f"not in the paper; {missed} missed, {rejected} rejected in {len(ends[name])} sets"
    return judged(PAPER, "ours", text, None, value, "1", because=note)


ITEMS = (
    Item("ours", "Ours against Dynamic, jobs at time 0", offline),
    Item("ours-online", "Ours against the safe Dynamic, jobs over 150 s", online),
)
