"""One end for all processors of a server: run times that share idle and energy best.

Given the order of tasks on each processor and when it is free for them, minimise
``sum of E_i(t_i) - idle × t_i, plus up × F`` with every end before its deadline and before F. It is
convex: on a processor all tasks that no deadline stops share one slope of energy over time, and
the slopes of the processors that end at F add up to the power that ends with the server.

Run times at a slope come from a table (`slope_table`), read between its columns: any run time is
allowed, and energy is flat to second order around the best one.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.least_tree import LARGEST
from downclock.planners.cluster.kernels.curves import Curves, at_slope_s, energy_j, fill_s
from downclock.power.kernels.models import LADDER
from downclock.units import Floats, Ints

STEPS = 48


@compiled
def slope_table(curves: Curves, rows: Ints, below_w: Floats) -> Floats:
    """Return the run time of each row where energy over time rises by idle power less these (m, n).

    ``below_w`` rises from 0; run times are kept between the shortest and the calmest.
    """
    table = np.full((rows.size, below_w.size), np.inf)
    for a in range(rows.size):
        row = rows[a]
        if not curves.rows.short_s[row] < LARGEST:
            continue
        idle_w = curves.kinds.idle_w[row % curves.box.shape[0]]
        for m in range(below_w.size):
            t = at_slope_s(curves, row, idle_w - below_w[m])
            table[a, m] = min(max(t, curves.rows.short_s[row]), curves.rows.long_s[row])
    return table


@inner
def _total(table: Floats, low: int, high: int, at: float, times: Floats) -> float:
    """Fill the run times of tasks ``low:high`` at one (fractional) column; return their sum."""
    column = min(int(at), table.shape[1] - 2)
    part = at - column
    total = 0.0
    for a in range(low, high):
        times[a] = table[a, column] + part * (table[a, column + 1] - table[a, column])
        total += times[a]
    return total


@compiled
def _share(table: Floats, low: int, high: int, room_s: float, times: Floats) -> float:
    """Fit tasks ``low:high`` into ``room_s`` at one slope; return its column, -1: impossible."""
    slow, fast = 0.0, table.shape[1] - 1.0
    if _total(table, low, high, slow, times) <= room_s:
        return 0.0
    if _total(table, low, high, fast, times) > room_s:
        return -1.0
    for _ in range(STEPS):
        middle = 0.5 * (fast + slow)
        total = _total(table, low, high, middle, times)
        if total > room_s:
            slow = middle
        else:
            fast = middle
            if total > room_s * (1.0 - 1e-9):
                return fast
    _total(table, low, high, fast, times)
    return fast


@inner
def fit_chain(
    table: Floats,
    deadlines: Floats,
    low: int,
    high: int,
    start_s: float,
    end_s: float,
    times: Floats,
) -> tuple[float, float]:
    """Fit a processor's tasks between ``start_s`` and ``end_s`` and before their deadlines.

    Returns (column of the slope at the end, end); column -1: impossible, 0: nothing presses.
    Solved with the last limit only; the deadline that is missed most then splits the chain.
    """
    begin, start, column = low, start_s, 0.0
    while begin < high:
        stop, room = high, end_s - start
        while True:
            column = _share(table, begin, stop, room, times)
            if column < 0.0:
                return -1.0, start
            late, worst, at = -1, 1e-9 * max(1.0, room), start
            for a in range(begin, stop):
                at += times[a]
                if at - deadlines[a] > worst:
                    late, worst = a, at - deadlines[a]
            if late < 0:
                break
            stop, room = late + 1, deadlines[late] - start
        if stop < high or room < end_s - start:
            column = 0.0
        for a in range(begin, stop):
            start += times[a]
        begin = stop
    return column, start


@inner
def _pull_w(
    table: Floats,
    below_w: Floats,
    deadlines: Floats,
    first: Ints,
    starts_s: Floats,
    end_s: float,
    times: Floats,
) -> float:
    """Return how much energy a later end would save per second; infinite: this one is too soon."""
    pull = 0.0
    for c in range(first.size - 1):
        if first[c] < first[c + 1]:
            low, high = first[c], first[c + 1]
            at, _ = fit_chain(table, deadlines, low, high, starts_s[c], end_s, times)
            if at < 0.0:
                return np.inf
            column = min(int(at), below_w.size - 2)
            pull += below_w[column] + (at - column) * (below_w[column + 1] - below_w[column])
    return pull


@inner
def _snap(
    curves: Curves,
    rows: Ints,
    deadlines: Floats,
    first: Ints,
    starts_s: Floats,
    least_s: float,
    times: Floats,
) -> float:
    """Take enumerated clocks at most as slow as asked, then slow down into gaps; return the end."""
    end = least_s
    for c in range(first.size - 1):
        done = starts_s[c] if first[c] < first[c + 1] else 0.0
        for a in range(first[c], first[c + 1]):
            if curves.rows.model[rows[a]] == LADDER:
                times[a] = fill_s(curves, rows[a], times[a])
            done += times[a]
        end = max(end, done)
    for c in range(first.size - 1):
        for a in range(first[c], first[c + 1]):
            if curves.rows.model[rows[a]] == LADDER:
                gap, at = end, starts_s[c]
                for b in range(first[c], first[c + 1]):
                    at += times[b]
                    if b >= a:
                        gap = min(gap, min(deadlines[b], end) - at)
                if gap > 0.0:
                    times[a] = fill_s(curves, rows[a], times[a] + gap)
    return end


@inner
def _range_s(
    curves: Curves, rows: Ints, deadlines: Floats, first: Ints, starts_s: Floats, least_s: float
) -> tuple[float, float]:
    """Return the soonest and the latest end that a server can have, at least ``least_s``."""
    low = high = least_s
    for c in range(first.size - 1):
        short = long = starts_s[c]
        for a in range(first[c], first[c + 1]):
            short += curves.rows.short_s[rows[a]]
            long = min(long + curves.rows.long_s[rows[a]], deadlines[a])
        if first[c] < first[c + 1]:
            low, high = max(low, short), max(high, long)
    return low, max(low, high)


@compiled
def equalise(
    curves: Curves,
    table: Floats,
    below_w: Floats,
    rows: Ints,
    deadlines: Floats,
    first: Ints,
    starts_s: Floats,
    least_s: float,
    awake_w: float,
    times: Floats,
) -> float:
    """Choose run times of one server's chains and its end; return its cost, inf: impossible.

    Chain ``c`` owns tasks ``first[c]:first[c + 1]`` and begins at ``starts_s[c]``; the server is
    awake until ``least_s`` anyway. Cost: energy, less idle power while tasks run, plus ``awake_w``
    from then to the end. Halves the range of the end on the sum of slopes (`slope_table`).
    """
    low, high = _range_s(curves, rows, deadlines, first, starts_s, least_s)
    if not high < LARGEST:
        return np.inf
    for _ in range(30):
        middle = 0.5 * (low + high)
        if _pull_w(table, below_w, deadlines, first, starts_s, middle, times) > awake_w:
            low = middle
        else:
            high = middle
    for c in range(first.size - 1):
        at, _ = fit_chain(table, deadlines, first[c], first[c + 1], starts_s[c], high, times)
        if at < 0.0:
            return np.inf
    end = _snap(curves, rows, deadlines, first, starts_s, least_s, times)
    cost = awake_w * (end - least_s)
    for a in range(rows.size):
        idle_w = curves.kinds.idle_w[rows[a] % curves.box.shape[0]]
        cost += energy_j(curves, rows[a], times[a]) - idle_w * times[a]
    return cost
