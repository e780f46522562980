"""What every task wants before anybody places it: run times, preferred kinds, clock ladders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from downclock.engine.policy import View
from downclock.planners.lists.lengths import Lengths
from downclock.units import TOLERANCE, Bools, Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.lists.kernels.board import Jobs


@dataclass(frozen=True, slots=True, eq=False)
class Wishes:
    """Wishes of n tasks on k kinds."""

    lengths: Floats  # (4, k, n) wanted, least and cheapest run time, utilisation
    kinds: Ints  # (n, k) kinds, the cheapest first; -1: no more
    best_s: Floats  # (n,) wanted run time on the first kind
    binding: Bools  # (n,) the deadline binds there

    @classmethod
    def of(cls, lengths: Lengths, view: View) -> Wishes:
        """Ask the length rule once per problem."""
        return view.once(("wishes", lengths), lambda: _wishes(lengths, view))

    def jobs(self, view: View, tasks: Ints, alone: Bools) -> Jobs:
        """Columns of ``tasks`` in this order, for the kernel."""
        from downclock.planners.lists.kernels.board import Jobs

        table = view.problem.tasks
        times = np.array([table.arrival_s[tasks], table.deadline_s[tasks], alone])
        offsets, rungs = _ladders(view, tasks)
        return Jobs(times, self.kinds[tasks], self.lengths[:, :, tasks], offsets, rungs)


def _wishes(lengths: Lengths, view: View) -> Wishes:
    kinds = len(view.problem.platform.kinds)
    shortest = np.array([view.frontier(k).t_min_s for k in range(kinds)])
    cheapest = np.array([view.frontier(k).t_opt_s for k in range(kinds)])
    wanted = np.array([lengths.wanted(view, k) for k in range(kinds)])
    wanted = np.where(np.isfinite(wanted), wanted, shortest)
    binds = np.array([lengths.binds(view, k) for k in range(kinds)])
    order = np.zeros((wanted.shape[1], 1), dtype=np.int64)
    if kinds > 1:
        cost = [view.frontier(k).within(view.window_s).energy_j for k in range(kinds)]
        order = np.argsort(np.array(cost), axis=0, kind="stable").T
    possible = np.take_along_axis(np.isfinite(wanted.T), order, axis=1)
    window_s = view.window_s
    known = np.isfinite(wanted) & (window_s > TOLERANCE)
    share = np.divide(wanted, window_s, out=np.zeros_like(wanted), where=known)
    every = np.arange(wanted.shape[1])
    return Wishes(
        np.array([wanted, shortest, cheapest, share]),
        np.ascontiguousarray(np.where(possible, order, -1)),
        wanted[order[:, 0], every],
        binds[order[:, 0], every],
    )


def _ladders(view: View, tasks: Ints) -> tuple[Ints, Floats]:
    """Run times of enumerated clocks, job by job, for every kind: offsets (k, m + 1), entries."""
    kinds = len(view.problem.platform.kinds)
    offsets = np.zeros((kinds, tasks.size + 1), dtype=np.int64)
    rungs: list[Floats] = [np.empty(0)]
    base = 0
    for k in range(kinds):
        first, times = _ladder(view, k)
        counts = np.diff(first)[tasks]
        offsets[k, 0] = base
        offsets[k, 1:] = base + np.cumsum(counts)
        if counts.any():
            entry = np.repeat(first[tasks] - (offsets[k, :-1] - base), counts)
            rungs.append(times[entry + np.arange(entry.size)])
        base = int(offsets[k, -1])
    return offsets, np.concatenate(rungs)


def _ladder(view: View, kind: int) -> tuple[Ints, Floats]:
    """Offsets (n + 1,) and run times of every task's enumerated clocks on a kind.

    Only those that no faster clock beats: the slowest that fits is then the cheapest that fits.
    """
    return view.once(("ladder", kind), lambda: _worthwhile(*view.frontier(kind).ladder()))


def _worthwhile(first: Ints, time_s: Floats, energy_j: Floats) -> tuple[Ints, Floats]:
    """Drop entries that cost no less than a faster one of the same row; cost linear."""
    counts = np.diff(first)
    keep = np.zeros(time_s.size, dtype=bool)
    least = np.full(counts.size, np.inf)
    for place in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > place)
        entry = first[rows] + place
        better = energy_j[entry] < least[rows]
        keep[entry] = better
        least[rows[better]] = energy_j[entry[better]]
    kept = np.concatenate([[0], np.cumsum(keep)])
    return kept[first], time_s[keep]
