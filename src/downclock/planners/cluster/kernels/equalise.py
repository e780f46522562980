"""One end for all processors of a server: run times that share idle and energy best.

Given the order of tasks on each processor and that all start together, minimise
``sum of E_i(t_i) - idle × t_i, plus up × F`` with every end before its deadline and before F. It is
convex: on a processor all tasks that no deadline stops share one slope of energy over time, and
the slopes of the processors that end at F add up to the power that ends with the server.

Run times at a slope come from a table (`slope_table`), read between its columns: any run time is
allowed, and energy is flat to second order around the best one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled
from downclock.planners.cluster.kernels.curves import Curves, at_slope_s, energy_j, fill_s
from downclock.power.kernels.models import LADDER

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

STEPS = 48


@compiled
def slope_table(curves: Curves, rows: Ints, slopes: Floats) -> Floats:
    """Return the run time of each row at each slope of energy over time (m, slopes).

    Slopes fall; run times are kept between the shortest and the calmest.
    """
    table = np.empty((rows.size, slopes.size))
    for a in range(rows.size):
        row = rows[a]
        for m in range(slopes.size):
            t = at_slope_s(curves, row, slopes[m])
            table[a, m] = min(max(t, curves.rows.short_s[row]), curves.rows.long_s[row])
    return table


@compiled
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


@compiled
def fit_chain(
    table: Floats, deadlines: Floats, low: int, high: int, end_s: float, times: Floats
) -> tuple[float, float]:
    """Fit a processor's tasks before ``end_s`` and their deadlines.

    Returns (column of the slope at the end, end); column -1: impossible, 0: nothing presses.
    Solved with the last limit only; the deadline that is missed most then splits the chain.
    """
    begin, start, column = low, 0.0, 0.0
    while begin < high:
        stop, room = high, end_s - start
        while True:
            column = _share(table, begin, stop, room, times)
            if column < 0.0:
                return -1.0, start
            late, worst, at = -1, 1e-9 * max(1.0, end_s), start
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


@compiled
def _pull_w(
    table: Floats, slopes: Floats, deadlines: Floats, first: Ints, end_s: float, times: Floats
) -> float:
    """Return how much energy a later end would save per second; infinite: this one is too soon."""
    pull = 0.0
    for c in range(first.size - 1):
        if first[c] < first[c + 1]:
            at, _ = fit_chain(table, deadlines, first[c], first[c + 1], end_s, times)
            if at < 0.0:
                return np.inf
            column = min(int(at), slopes.size - 2)
            slope = slopes[column] + (at - column) * (slopes[column + 1] - slopes[column])
            pull += slopes[0] - slope
    return pull


@compiled
def _snap(curves: Curves, rows: Ints, deadlines: Floats, first: Ints, times: Floats) -> float:
    """Take enumerated clocks at most as slow as asked, then slow down into gaps; return the end."""
    end = 0.0
    for c in range(first.size - 1):
        done = 0.0
        for a in range(first[c], first[c + 1]):
            if curves.rows.model[rows[a]] == LADDER:
                times[a] = fill_s(curves, rows[a], times[a])
            done += times[a]
        end = max(end, done)
    for c in range(first.size - 1):
        for a in range(first[c], first[c + 1]):
            if curves.rows.model[rows[a]] == LADDER:
                gap, at = end, 0.0
                for b in range(first[c], first[c + 1]):
                    at += times[b]
                    if b >= a:
                        gap = min(gap, min(deadlines[b], end) - at)
                if gap > 0.0:
                    times[a] = fill_s(curves, rows[a], times[a] + gap)
    return end


@compiled
def equalise(
    curves: Curves,
    table: Floats,
    slopes: Floats,
    rows: Ints,
    deadlines: Floats,
    first: Ints,
    up_w: float,
    times: Floats,
) -> float:
    """Choose run times of one server's chains and its end; return its cost, inf: impossible.

    Chain ``c`` owns tasks ``first[c]:first[c + 1]``; ``slopes[0]`` is the idle power. Cost:
    energy, less idle power while tasks run, plus ``up_w`` up to the end. Halves the range of
    the end on the sum of slopes.
    """
    low = high = 0.0
    for c in range(first.size - 1):
        short = long = 0.0
        for a in range(first[c], first[c + 1]):
            short += curves.rows.short_s[rows[a]]
            long = min(long + curves.rows.long_s[rows[a]], deadlines[a])
        low, high = max(low, short), max(high, long)
    for _ in range(30):
        middle = 0.5 * (low + high)
        if _pull_w(table, slopes, deadlines, first, middle, times) > up_w:
            low = middle
        else:
            high = middle
    for c in range(first.size - 1):
        at, _ = fit_chain(table, deadlines, first[c], first[c + 1], high, times)
        if at < 0.0:
            return np.inf
    end = _snap(curves, rows, deadlines, first, times)
    cost = up_w * end
    for a in range(rows.size):
        cost += energy_j(curves, rows[a], times[a]) - slopes[0] * times[a]
    return cost
