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

from dataclasses import dataclass

import numpy as np

from downclock.planners.cluster.known.bins_bound import least_rates
from downclock.planners.cluster.known.hulls import Hulls, hulls
from downclock.planners.cluster.known.kernels.model import Question
from downclock.planners.cluster.known.limited import add_caps, open_s
from downclock.planners.cluster.known.places import Pairs, closed, counts_when, is_spread
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.question import KnownQuestion, lead_of, sizes_of
from downclock.units import Bools, Floats, Ints

STEPS_S = (150.0, 200.0, 300.0, 450.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0)
"""Seconds between two looks; the first that makes few enough entries is used."""

A_CELL, A_CORNER = 13, 2
"""Entries of the program for each job and moment, and for each corner and piece of time."""

A_SECOND, GROWTH = 36_000, 0.5
"""Entries of a program that is solved in about a second, and the power of time they grow with."""

SAFE = 5e-7
"""Taken off the optimum, relative: some times the solver's tolerance of 1e-7, and less than what
counts as proven, so that a bound that meets a plan says so."""


def start_bound(asked: KnownQuestion, *, seconds: float) -> float:
    """Least value of any schedule that does every job of the question, none interrupted.

    Args:
        asked: the jobs.
        seconds: about how long the program may take; 0 is returned where it would take longer.
    """
    asked = closed(asked)
    question = asked.columns
    hull = hulls(question, few=counts_when(question))
    pairs = Pairs.of(asked, hull)
    every = np.unique(pairs.job).size == question.jobs.size
    if not every or is_spread(question):
        return 0.0
    corners = np.diff(hull.first)[question.curve[pairs.job, pairs.kind]]
    most = A_SECOND * seconds**GROWTH
    for step_s in STEPS_S:
        first, end, *_ = _looks(pairs, step_s)
        cells = A_CELL * np.sum(end - first + 1)
        if max(cells, end.max()) > most:
            continue
        piece = _pieces(question, _edges_s(question, step_s))
        pieces = piece[end - 1] - piece[first] + 1
        if cells + np.sum(pieces * corners * A_CORNER) <= most:
            bound = _Model(question, hull, pairs, step_s).bound()
            if bound > 0.0:  # else it went in circles: fewer looks may not
                return bound
    return 0.0


def _edges_s(question: Question, step_s: float) -> Floats:
    """Ends of the times between two looks, to beyond the last deadline (h + 1,)."""
    return step_s * np.arange(np.floor(question.jobs.to_s.max() / step_s) + 2.0)


def _pieces(question: Question, edge_s: Floats) -> Ints:
    """Piece of time of each moment (h,): where in it a job draws what it draws does not count."""
    rate = least_rates(question.tariff, edge_s)
    counts = np.any(rate[:, 1:] != rate[:, :-1], axis=0) | bool(question.caps.size)
    return np.append(0, np.cumsum(counts))


def _looks(pairs: Pairs, step_s: float) -> tuple[Ints, Ints, Ints, Ints]:
    """First and end of each window in moments, and the least and most moments of a run."""
    first = np.floor(pairs.from_s / step_s)
    end = np.maximum(np.ceil(pairs.to_s / step_s), first + 1.0)
    least, most = np.floor(pairs.short_s / step_s), np.ceil(pairs.long_s / step_s)
    found = (first, end, least, np.minimum(most, end - first))
    a, b, c, d = (each.astype(np.int64) for each in found)
    return a, b, c, d


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """Jobs on a kind of processor in a group of servers, and the room they take.

    Attributes:
        group: the servers.
        size: processors of the kind on one.
        mine: whether a pair is one of them (p,).
        servers, last: servers that a pair needs (p,), and its processors on the last.
    """

    group: int
    size: int
    mine: Bools
    servers: Ints
    last: Ints


class _Model:
    """The program; what a joule is worth is ``rate`` (groups, moments)."""

    def __init__(self, question: Question, hull: Hulls, pairs: Pairs, step_s: float) -> None:
        self.question, self.pairs, self.step_s = question, pairs, step_s
        self.program, self.lead = Program(), lead_of(question)
        edge_s = _edges_s(question, step_s)
        self.rate = least_rates(question.tariff, edge_s)[self.lead.zone]
        self.piece = _pieces(question, edge_s)
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
        """What is awake holds what is seen; return the cells: pair, moment and column of each."""
        pairs, (first, end, *_) = self.pairs, self.looks
        pair = np.repeat(np.arange(first.size), end - first)
        at = np.arange(pair.size) - (np.cumsum(end - first) - (end - first) - first)[pair]
        cells = pair, at, self.place[pair] + at
        sizes, gang = sizes_of(self.question), self.question.jobs.gang[pairs.job]
        servers = -(-gang // sizes[pairs.group, pairs.kind])
        last = gang - (servers - 1) * sizes[pairs.group, pairs.kind]
        for group, kind in np.unique(np.column_stack([pairs.group, pairs.kind]), axis=0):
            mine = (pairs.group == group) & (pairs.kind == kind)
            held = _Held(int(group), int(sizes[group, kind]), mine, servers, last)
            self._all_of(held, cells)
            self._one_of(held, cells)
        return cells

    def _all_of(self, held: _Held, cells: tuple[Ints, Ints, Ints]) -> None:
        """All jobs: of d processors or more a server holds so many times d, and no rest."""
        pair, at, cell = cells
        last, awake = held.last[held.mine], self.awake[held.group]
        for part in np.unique([1, held.size // 2 + 1, *last]):
            times = held.size // part
            if part > 1 and np.all(last // part * held.size <= last * times):
                continue  # with rests it says as much
            takes = np.where(held.mine, (held.servers - 1) * times + held.last // part, 0)
            rows = self.program.rows(awake.size, 0.0)
            self.program.put(rows, awake, float(times))
            some = np.flatnonzero(takes[pair] > 0)
            self._put_seen(rows[at[some]], cell[some], -takes[pair[some]].astype(float))

    def _one_of(self, held: _Held, cells: tuple[Ints, Ints, Ints]) -> None:
        """Each job alone, as what is awake may be part of a server, and all that leave it no room.

        Those need more than half a server, so that no two of them share one.
        """
        program, awake, (pair, at, cell) = self.program, self.awake[held.group], cells
        wide = held.mine & (2 * held.last > held.size)
        for part in np.unique(held.last[held.mine & ~wide]):
            mine = np.flatnonzero((held.mine & ~wide & (held.last == part))[pair])
            alone = program.rows(mine.size, 0.0)
            program.put(alone, awake[at[mine]], 1.0)
            self._put_seen(alone, cell[mine], -held.servers[pair[mine]].astype(float))
            others = np.flatnonzero((wide & (held.last + part > held.size))[pair])
            if others.size:
                taken, rows = program.columns(np.zeros(awake.size)), program.rows(awake.size, 0.0)
                program.put(rows, taken, 1.0)
                self._put_seen(
                    rows[at[others]], cell[others], -held.servers[pair[others]].astype(float)
                )
                program.put(alone, taken[at[mine]], -1.0)

    def _runs(self, hull: Hulls, seen: Ints, at: Ints, cell: Ints) -> None:
        """Every job is done, in the time that it is seen: in each piece of time by itself."""
        question, pairs, program = self.question, self.pairs, self.program
        piece = self.piece[at]
        new = np.append(True, (seen[1:] != seen[:-1]) | (piece[1:] != piece[:-1]))
        pair, first = seen[new], at[new]
        part, of, time_s, joules = pairs.works(question, hull, pair)
        share = program.columns(joules * self.rate[pairs.group[of], first[part]])
        awake = (self.awake, np.full(self.awake.shape[1], self.step_s), self.step_s)
        add_caps(program, question, awake, (share, pairs.group[of], first[part], joules))
        done = self.begun[self.place + self.looks[1]]
        once = program.rows(question.jobs.size, 1.0, 1.0)
        program.put(once[pairs.job], done, 1.0)
        same, long = program.rows(pairs.job.size, 0.0, 0.0), program.rows(pair.size, 0.0, 0.0)
        program.put(same, done, 1.0)
        program.put(same[of], share, -1.0)
        program.put(long[part], share, -time_s / self.step_s)
        self._put_seen(long[np.cumsum(new) - 1], cell, 1.0)

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
