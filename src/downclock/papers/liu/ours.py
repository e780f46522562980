"""Energy-aware replanning against the paper's Dynamic, with honest clocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from downclock.papers.liu import PAPER
from downclock.papers.liu.runs import SCHEMES, Ended, Ends, sets, table
from downclock.papers.rows import Item, Row, Settings, ours_only
from downclock.workloads.liu import Box, Lengths

LOADS = ("light", "heavy")
OURS = ("Ours, horizon", "Ours, makespan")
ARRIVALS_S = 150.0


def ratio(
    ends: Ends, name: str, base: str, energy_of: Callable[[Ended], float]
) -> tuple[float, float]:
    """Energy over all sets as a ratio to another scheme's, and its standard error."""
    ours, theirs = (np.array([energy_of(one) for one in ends[key]]) for key in (name, base))
    whole = float(ours.sum() / theirs.sum())
    if ours.size < 2:
        return whole, 0.0
    off = (ours - whole * theirs) / theirs.mean()
    return whole, float(off.std(ddof=1) / np.sqrt(ours.size))


def offline(settings: Settings) -> list[Row]:
    """Jobs at time 0 that end early: common horizon above idle, and 100 W until makespan."""
    names = ("ERF", "Static", "Dynamic", "Dynamic, no balancing", "Aggressive")
    rows = _offline(settings, (*names, *OURS), "log-uniform")
    return rows if settings.quick else [*rows, *_offline(settings, ("Dynamic", *OURS), "uniform")]


def _offline(settings: Settings, names: tuple[str, ...], lengths: Lengths) -> list[Row]:
    rows = []
    kind = "" if lengths == "log-uniform" else ", uniform lengths"
    for load in LOADS:
        found = sets(settings, load, Box(system_w=100.0), lengths=lengths)
        ends = table(found, {name: SCHEMES[name] for name in names})
        for name in names:
            if name == "Dynamic":
                continue
            if name != "Ours, makespan":
                value = ratio(ends, name, "Dynamic", lambda one: one.above_idle_j)
                text = f"{name} / Dynamic, {load}{kind}, common horizon"
                rows.append(_row(text, value, ends, name))
            if name != "Ours, horizon":
                value = ratio(ends, name, "Dynamic", lambda one: one.total_j)
                text = f"{name} / Dynamic, {load}{kind}, 100 W until makespan"
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
            rows.append(_row(f"{name} / safe Dynamic, {load}, online", value, ends, name, "Safe"))
    return rows


def _row(text: str, value: tuple[float, float], ends: Ends, name: str, base: str = "") -> Row:
    missed = sum(one.missed for one in ends[name])
    rejected = sum(one.rejected for one in ends[name])
    beside = f" ({base}: {sum(one.rejected for one in ends[base])})" if base else ""
    note = (
        f"standard error {value[1]:.4f}, {missed} missed, {rejected} rejected"
        f"{beside} in {len(ends[name])} sets"
    )
    item = "ours-online" if base else "ours"
    return ours_only((PAPER, item), text, value[0], "1", note)


ITEMS = (
    Item("ours", "Ours against Dynamic, jobs at time 0", offline),
    Item("ours-online", "Ours against the safe Dynamic, jobs over 150 s", online),
)
