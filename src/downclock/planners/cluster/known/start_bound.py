"""A lower bound for jobs that run without a pause, by a linear program over starts.

Look at a schedule every so many seconds, from a first moment that is drawn: on average each job is
seen as often as it is long, each awake server as often as it is awake, and wakes in between are at
least what is awake more. A job is seen in a row of moments. So the average of all that can be seen
solves a program that says what part of each job has been seen by a moment, and what part is seen
no more, in which what is awake holds what is seen, no job is seen before those ahead of it have
been, and no cap is passed on average between two moments. Between two steps of the price a joule
counts at the lower. Jobs that run in pieces are not bound by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downclock.planners.cluster.known.bins_bound import least_rates
from downclock.planners.cluster.known.hulls import Hulls, hulls
from downclock.planners.cluster.known.limited import add_caps, open_s
from downclock.planners.cluster.known.places import Pairs, counts_when, is_spread
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.question import KnownQuestion, lead_of, sizes_of
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.known.kernels.model import Question

STEPS_S = (150.0, 200.0, 300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0)
"""Seconds between two looks; the first that makes few enough columns is used."""

SAFE = 5e-7
"""Taken off the optimum, relative: some times the solver's tolerance of 1e-7, and less than what
counts as proven, so that a bound that meets a plan says so."""


def start_bound(asked: KnownQuestion, *, columns: int) -> float:
    """Least value of any schedule that does every job of the question, none interrupted.

    Args:
        asked: the jobs, each with a deadline.
        columns: most columns of the program; 0 is returned where there would be more.
    """
    question, hull = asked.columns, hulls(asked.columns)
    pairs = Pairs.of(asked, hull)
    every = np.unique(pairs.job).size == question.jobs.size
    if not every or is_spread(question) or not np.all(np.isfinite(question.jobs.to_s)):
        return 0.0
    corners = np.diff(hull.first)[question.curve[pairs.job, pairs.kind]]
    corners = corners if counts_when(question) else np.zeros_like(corners)
    for step_s in STEPS_S:
        first, end, *_ = _looks(pairs, step_s)
        if np.sum((end - first + 1) * (2 + corners)) <= columns:
            return _Model(question, hull, pairs, step_s).bound()
    return 0.0


def _looks(pairs: Pairs, step_s: float) -> tuple[Ints, Ints, Ints, Ints]:
    """First and end of each window in moments, and the least and most moments of a run."""
    first, end = np.floor(pairs.from_s / step_s), np.ceil(pairs.to_s / step_s)
    least, most = np.floor(pairs.short_s / step_s), np.ceil(pairs.long_s / step_s)
    found = (first, end, least, np.minimum(most, end - first))
    a, b, c, d = (each.astype(np.int64) for each in found)
    return a, b, c, d


class _Model:
    """The program; what a joule is worth is ``rate`` (groups, moments)."""

    def __init__(self, question: Question, hull: Hulls, pairs: Pairs, step_s: float) -> None:
        self.question, self.pairs, self.step_s = question, pairs, step_s
        self.program, self.lead = Program(), lead_of(question)
        moments = int(np.ceil(question.jobs.to_s.max() / step_s))
        edge_s = step_s * np.arange(moments + 1.0)
        self.rate = least_rates(question.tariff, edge_s)[self.lead.zone]
        counts = (question.groups.end - question.groups.first).astype(float)
        # a server sleeps before its last job whenever it is neither awake nor waking; where waking
        # draws less than sleep does, sleep counts for as little
        waking_w = self.lead.wake_j / np.where(self.lead.wake_s > 0.0, self.lead.wake_s, 1.0)
        waking_w = np.where(self.lead.wake_s > 0.0, waking_w, np.inf)
        self.sleep_w = np.minimum(self.lead.sleep_w, waking_w)
        awake_w = self.lead.up_w - self.sleep_w
        limit = open_s(question, edge_s) / step_s
        self.awake = self.program.columns(awake_w[:, None] * self.rate * step_s, limit)
        self.looks = _looks(pairs, step_s)
        first, end, *_ = self.looks
        self.place = np.cumsum(end - first + 1) - (end - first + 1) - first
        self.begun, self.ended = self._courses()
        wakes = self._servers(counts)
        self._runs(hull, *self._hold())
        self._wake_for(wakes, np.where(self.lead.begins_on, counts, 0.0))
        self._in_turn()

    def _servers(self, counts: Floats) -> Ints:
        """Awake servers were woken, and are needed until their last job; return the wakes."""
        program, lead, awake = self.program, self.lead, self.awake
        reach = 1 + int(np.ceil(lead.wake_s.max() / self.step_s))
        least = np.array(
            [self.rate[:, max(0, k - reach) : k + 1].min(1) for k in range(awake.shape[1])]
        ).T
        wakes = program.columns((lead.wake_j - self.sleep_w * lead.wake_s)[:, None] * least)
        rows = program.rows(counts.size, -np.where(lead.begins_on, counts, 0.0))
        program.put(rows, wakes[:, 0], 1.0)
        program.put(rows, awake[:, 0], -1.0)
        rows = program.rows(awake[:, 1:].size, 0.0).reshape(awake[:, 1:].shape)
        for columns, value in ((wakes[:, 1:], 1.0), (awake[:, 1:], -1.0), (awake[:, :-1], 1.0)):
            program.put(rows, columns, value)
        if np.any(self.sleep_w > 0.0):
            needed = program.columns(self.sleep_w[:, None] * self.rate * self.step_s)
            for later in (awake, needed[:, 1:]):
                now = needed[:, : later.shape[1]]
                rows = program.rows(now.size, 0.0).reshape(now.shape)
                program.put(rows, now, 1.0)
                program.put(rows, later, -1.0)
        return wakes

    def _courses(self) -> tuple[Ints, Ints]:
        """What of each pair has been seen by a moment, and what is seen no more from it on.

        A job that is never seen runs between two moments; both columns rise at the second. Column
        of pair p at moment h: ``place[p] + h``, from the first moment of its window to the end.
        """
        program, (first, end, least, most) = self.program, self.looks
        pair = np.repeat(np.arange(first.size), end - first + 1)
        at = np.arange(pair.size) - self.place[pair]
        begun = program.columns(np.zeros(pair.size))
        short = at < first[pair] + least[pair]
        ended = program.columns(np.zeros(pair.size), np.where(short, 0.0, np.inf))
        again = np.flatnonzero(at > first[pair])
        for columns in (begun, ended):
            rows = program.rows(again.size, 0.0)
            program.put(rows, columns[again], 1.0)
            program.put(rows, columns[again - 1], -1.0)
        for length, sign in ((least, 1.0), (most, -1.0)):
            since = np.flatnonzero(at - length[pair] >= first[pair])
            rows = program.rows(since.size, 0.0)
            program.put(rows, begun[since - length[pair[since]]], sign)
            program.put(rows, ended[since], -sign)
        rows = program.rows(first.size, 0.0, 0.0)
        program.put(rows, begun[self.place + end], 1.0)
        program.put(rows, ended[self.place + end], -1.0)
        return begun, ended

    def _put_seen(self, rows: Ints, cell: Ints, value: Floats | float) -> None:
        """Write how often cells are seen into rows."""
        self.program.put(rows, self.begun[cell], value)
        self.program.put(rows, self.ended[cell], -np.asarray(value))

    def _hold(self) -> tuple[Ints, Ints, Ints]:
        """What is awake holds what is seen; return the cells: pair, moment and column of each.

        Each job alone, as what is awake may be part of a server, and all of them.
        """
        program, pairs, question = self.program, self.pairs, self.question
        groups, moments = self.awake.shape
        first, end, *_ = self.looks
        pair = np.repeat(np.arange(first.size), end - first)
        at = np.arange(pair.size) - (np.cumsum(end - first) - (end - first) - first)[pair]
        cell = self.place[pair] + at
        sizes, gang = sizes_of(question), question.jobs.gang[pairs.job]
        size = sizes[pairs.group, pairs.kind]
        group, alone = pairs.group[pair], program.rows(cell.size, 0.0)
        program.put(alone, self.awake[group, at], 1.0)
        self._put_seen(alone, cell, -(-(-gang // size))[pair].astype(float))
        kinds = sizes.shape[1]
        holds = program.rows(groups * kinds * moments, 0.0).reshape(groups, kinds, moments)
        program.put(
            holds, np.repeat(self.awake[:, None], kinds, 1), sizes[:, :, None].astype(float)
        )
        self._put_seen(holds[group, pairs.kind[pair], at], cell, -gang[pair].astype(float))
        return pair, at, cell

    def _runs(self, hull: Hulls, seen: Ints, at: Ints, cell: Ints) -> None:
        """Every job is done, in the time that it is seen: in each cell, where that counts."""
        question, pairs, program = self.question, self.pairs, self.program
        pair, row = seen, np.arange(seen.size)
        if not counts_when(question):
            pair, at, row = np.arange(pairs.job.size), np.zeros(pairs.job.size, np.int64), seen
        part, of, time_s, joules = pairs.works(question, hull, pair)
        share = program.columns(joules * self.rate[pairs.group[of], at[part]])
        awake = (self.awake, np.full(self.awake.shape[1], self.step_s), self.step_s)
        add_caps(program, question, awake, (share, pairs.group[of], at[part], joules))
        once = program.rows(question.jobs.size, 1.0, 1.0)
        program.put(once[pairs.job[of]], share, 1.0)
        same, long = program.rows(pairs.job.size, 0.0, 0.0), program.rows(pair.size, 0.0, 0.0)
        program.put(same[of], share, -1.0)
        program.put(same, self.begun[self.place + self.looks[1]], 1.0)
        program.put(long[part], share, -time_s / self.step_s)
        self._put_seen(long[row], cell, 1.0)

    def _wake_for(self, wakes: Ints, on: Floats) -> None:
        """A server of a job is awake when its window begins, or wakes within it."""
        program, pairs, (first, end, *_) = self.program, self.pairs, self.looks
        early = first == 0
        rows = program.rows(first.size, np.where(early, -on[pairs.group], 0.0))
        program.put(rows, self.begun[self.place + end], -1.0)
        late = np.flatnonzero(~early)
        program.put(rows[late], self.awake[pairs.group[late], first[late] - 1], 1.0)
        size = end - first
        pair = np.repeat(np.arange(first.size), size)
        moment = np.arange(pair.size) + np.repeat(first - (np.cumsum(size) - size), size)
        program.put(rows[pair], wakes[pairs.group[pair], moment], 1.0)

    def _in_turn(self) -> None:
        """What was seen of a job by a moment has the jobs ahead of it seen no more from then on."""
        program, question, (first, end, *_) = self.program, self.question, self.looks
        jobs = question.jobs
        mine = [np.flatnonzero(self.pairs.job == job) for job in range(jobs.size)]
        after = np.repeat(np.arange(jobs.size), jobs.before_end - jobs.before_first)
        for a, b in zip(question.before, after, strict=True):
            at = np.arange(first[mine[b]].min(), min(end[mine[a]].max(), end[mine[b]].max()) + 1)
            rows = program.rows(at.size, 0.0)
            for pairs, columns, value in ((mine[b], self.begun, -1.0), (mine[a], self.ended, 1.0)):
                for p in pairs:
                    since = np.flatnonzero(at >= first[p])
                    column = self.place[p] + np.minimum(at[since], end[p])
                    program.put(rows[since], columns[column], value)

    def bound(self) -> float:
        """Solve it."""
        found = self.program.solve(interior=True)
        return 0.0 if found.x is None else max(0.0, float(found.fun) * (1.0 - SAFE))
